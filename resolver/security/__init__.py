"""Redaction of secrets, the risk of actions of the agent, and a parser of shell text."""
