"""Settings: their definitions, loaders and validation."""
