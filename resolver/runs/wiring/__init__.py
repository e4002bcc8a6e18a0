"""Builds the parts of a run from its settings: models, agents, sandbox, tools and knowledge."""
