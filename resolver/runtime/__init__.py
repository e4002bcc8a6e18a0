"""Where actions are executed: machines that run a sandbox, and the runtime that talks to them."""
