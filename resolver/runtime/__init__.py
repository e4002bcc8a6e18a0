"""Execution of actions: machines that run a sandbox, and the runtime that talks to them."""
