"""The entry points that start runs: the GitHub Action, the webhook server and scheduled sweeps."""
