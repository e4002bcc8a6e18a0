"""The project's environment: its image, and the set-up that runs before the agent."""
