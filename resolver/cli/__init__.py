"""The command line: one click command per module. It has no logic of the server or of a run."""
