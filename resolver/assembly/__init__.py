"""From the settings to the parts of a run: its models, agents, sandbox, tools and knowledge."""
