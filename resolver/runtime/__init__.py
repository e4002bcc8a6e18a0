"""Where actions are done: a machine that is started, and a runtime that talks to it."""
