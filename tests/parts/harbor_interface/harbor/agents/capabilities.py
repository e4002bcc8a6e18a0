"""What an agent says that it can do."""

from dataclasses import dataclass


@dataclass(frozen=True)
class AgentCapabilities:
    """atif: it writes a trajectory in ATIF to its logs."""

    atif: bool = False
