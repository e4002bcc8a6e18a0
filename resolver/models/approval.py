"""The nouns of risk and confirmation: how risky an action is, what waits for a person, and what the
person decided.
"""

import re
from datetime import datetime
from enum import StrEnum
from hashlib import sha256

from pydantic import Field

from resolver.models.base import LoggedModel


class RiskLevel(StrEnum):
    """What an action of the agent may do beyond the work it is for."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


def tool_risk(text: str) -> tuple[str, RiskLevel]:
    """Tool and level in `SERVER/TOOL=LEVEL`. Raises ValueError."""
    name, _, level = text.partition("=")
    if not name.strip() or level.strip() not in set(RiskLevel):
        raise ValueError(f"{text!r} is not SERVER=LEVEL or SERVER/TOOL=LEVEL (low, medium, high)")
    return name.strip(), RiskLevel(level.strip())


_NUMBER = re.compile(r"[ \t`]{0,9}([0-9]{6})(?![\w.])`?[ \t,;:.!-]{0,9}")


def number_for(action: int, kind: str, text: str) -> str:
    """Six digits by which a decision can name the action, and nothing that differs from it.

    action: its id in its log.
    """
    digest = sha256(f"{action}\0{kind}\0{text}".encode(errors="replace")).hexdigest()
    return f"{int(digest, 16) % 1_000_000:06}"


def named_number(words: str) -> tuple[str, str]:
    """The number that the words of a decision begin with, "" where they name none; the rest."""
    found = _NUMBER.match(words)
    return (found[1], words[found.end() :]) if found else ("", words)


class PendingApproval(LoggedModel):
    """An action that waits for a person. Made in `resolver.controller.confirmation`, shown by the
    forge."""

    kind: str = Field(description="Kind of the action.")
    text: str = Field(description="All of what would be done: the command, the code, the fields.")
    level: RiskLevel = Field(description="Its risk.")
    reasons: tuple[str, ...] = Field(default=(), description="The rules that apply to it.")
    number: str = Field(default="", description="Six digits by which a decision can name it.")


class ApprovalDecision(LoggedModel):
    """What a person said about an action that waits, in a comment."""

    approved: bool = Field(description="Whether the action may be done.")
    by: str = Field(default="", description="Login of who said it.")
    at: datetime = Field(description="When it was said.")
    reason: str = Field(default="", description="Why not, in the person's words.")
    number: str = Field(
        default="", description="Number of the action that it is about; empty when none was named."
    )
