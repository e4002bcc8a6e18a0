"""The GitHub App's server: a webhook that stores deliveries durably, and the worker behind it."""
