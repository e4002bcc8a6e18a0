"""The quotas of a repository: they admit a run, and record what it has cost."""
