"""GitHub API client: authentication, retries, REST and GraphQL requests."""
