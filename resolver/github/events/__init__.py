"""GitHub events: webhook payloads parsed into triggers, authorization and quotas."""
