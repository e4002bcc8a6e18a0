"""The settings of the forge: who is listened to, and how the work is made public."""

from pydantic_settings import BaseSettings


class ForgeKnobs(BaseSettings):
    """Triggers, branches, pull requests, reviews, comments."""
