"""The webhook server of the GitHub App: stores deliveries durably and runs what they ask for."""
