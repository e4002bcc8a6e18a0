"""The conversation of a run with people: progress and final comments, commands and approvals."""
