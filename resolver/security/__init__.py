"""Redaction of secrets, risk rules for actions of the agent, and the shell parser that they use."""
