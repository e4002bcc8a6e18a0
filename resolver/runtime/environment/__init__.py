"""The project's environment: its image and the set-up that prepares it before the agent."""
