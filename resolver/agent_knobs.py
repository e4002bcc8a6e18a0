"""The settings of what surrounds an agent: what it remembers, knows, may call and must ask for."""

from pydantic_settings import BaseSettings


class AgentKnobs(BaseSettings):
    """Condensers, skills, MCP servers, confirmation."""
