"""The tools that a model can call; tools that belong together share a module."""
