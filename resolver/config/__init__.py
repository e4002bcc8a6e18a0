"""Settings: definitions, loading from all sources, validation, and the template loader."""
