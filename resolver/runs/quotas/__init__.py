"""The quotas of a repository: the quota ledger, the admission decision and the dashboard."""
