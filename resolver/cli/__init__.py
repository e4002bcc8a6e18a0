"""Command line: one click command per module. It holds no logic of the server or of a run."""
