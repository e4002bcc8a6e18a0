"""Issue and pull request context: what a run reads from GitHub into its task."""
