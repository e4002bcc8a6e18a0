"""Models of the risk of an action, of the operator's rules for actions, and of their approval."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from hashlib import sha256

from pydantic import Field

from resolver.models.base import LoggedModel


class SecurityRisk(StrEnum):
    """The harm that an action of the agent can do beyond the work it is for."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    UNKNOWN = "unknown"


RATINGS = (SecurityRisk.LOW, SecurityRisk.MEDIUM, SecurityRisk.HIGH)
"""The risks that a model or the operator can state."""


def parse_tool_risk(text: str) -> tuple[str, SecurityRisk]:
    """Return the tool and the risk in `SERVER/TOOL=RISK` or `SERVER=RISK`. Raises ValueError."""
    name, _, level = (part.strip() for part in text.partition("="))
    if not name or level.lower() not in RATINGS:
        raise ValueError(f"{text!r} is not SERVER=RISK or SERVER/TOOL=RISK (low, medium, high)")
    return name, SecurityRisk(level.lower())


_RULE = re.compile(r"\s*([^\s()]+)\s*(?:\((.+)\))?\s*", re.DOTALL)


@dataclass(frozen=True)
class ActionRule:
    """A rule of the operator for calls of a tool: `TOOL` or `TOOL(TEXT)`.

    tool: the tool's name, `SERVER/TOOL` for one of an MCP server; a glob.
    text: a glob that is looked for anywhere in the action's text; None for every call of the tool.
    """

    tool: str
    text: str | None

    def matches(self, tool: str, text: str) -> bool:
        """Return True if the rule is for this call."""
        return fnmatchcase(tool, self.tool) and (
            self.text is None or fnmatchcase(text, f"*{self.text}*")
        )

    def __str__(self) -> str:
        return self.tool if self.text is None else f"{self.tool}({self.text})"


def parse_action_rule(text: str) -> ActionRule:
    """Return the rule that the text states. Raises ValueError."""
    match = _RULE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not TOOL or TOOL(TEXT), like `execute_bash(git push)`")
    return ActionRule(match[1], match[2])


def find_rule(rules: Iterable[ActionRule], tool: str, text: str) -> ActionRule | None:
    """Return the first rule that is for this call, None if there is none."""
    return next((rule for rule in rules if rule.matches(tool, text)), None)


_NUMBER_PREFIX = re.compile(r"[ \t`]{0,9}([0-9]{6})(?![\w.])`?[ \t,;:.!-]{0,9}")


def approval_number(action_id: int, kind: str, text: str) -> str:
    """Return six digits by which a comment can refer to an action.

    They are derived from the action's id and content, so that an approval does not carry over to
    another action, or to the same one after a change.

    action_id: id of the action in its event log.
    kind: kind of the action.
    text: all of what the action would do.
    """
    digest = sha256(f"{action_id}\0{kind}\0{text}".encode(errors="replace")).hexdigest()
    return f"{int(digest, 16) % 1_000_000:06}"


def split_decision_number(text: str) -> tuple[str | None, str]:
    """Return the number that a decision begins with and the text after it.

    The number is None when the text does not begin with one.
    """
    match = _NUMBER_PREFIX.match(text)
    return (match[1], text[match.end() :]) if match else (None, text)


class PendingApproval(LoggedModel):
    """An action that waits for a person's approval.

    Created by `resolver.controller.confirmation` and shown in a comment.
    """

    kind: str = Field(description="Kind of the action.")
    text: str = Field(description="All of what would be done: the command, the code, the fields.")
    level: SecurityRisk = Field(description="Risk of the action.")
    rule: str | None = Field(
        default=None, description="The operator's rule by which the action needs approval."
    )
    number: str = Field(
        default="", description="Six digits by which a comment can refer to the action."
    )
