"""The protocols that the scripted model endpoint speaks, one module a provider."""
