"""Quotas of a repository: the quota ledger, its admission decision and the dashboard."""
