"""Webhook server of the GitHub App: durable deliveries and the worker that runs them."""
