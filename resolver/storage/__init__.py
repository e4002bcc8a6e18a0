"""What runs leave for later runs and for people: logs, costs, quotas, histories and notes."""
