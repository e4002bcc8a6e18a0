"""The project's own environment: the image it wants, and what prepares it before the agent."""
