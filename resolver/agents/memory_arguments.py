"""The tools with which an agent asks for skills and takes notes for later runs."""

from pydantic import Field, field_validator

from resolver.agents.argument_types import Arguments, Words
from resolver.events import actions as a
from resolver.events.base import ActionBase

MAX_NOTE = 300
"""Maximum length of a note, in characters."""


class RecallArguments(Arguments):
    """`recall`."""

    query: Words = Field(
        description="The name of a skill, or words of what you want to know; empty for a list."
    )

    def action(self) -> ActionBase:
        return a.Recall(query=self.query.strip())


class RememberArguments(Arguments):
    """`remember`."""

    note: str = Field(
        description=f"One fact in a sentence or two, at most {MAX_NOTE} characters. It is read by "
        "somebody who knows nothing of this run."
    )

    @field_validator("note")
    @classmethod
    def _is_short(cls, note: str) -> str:
        note = " ".join(note.split())
        if not note:
            raise ValueError("note is empty")
        if len(note) > MAX_NOTE:
            raise ValueError(f"note has {len(note)} characters; say it in {MAX_NOTE}")
        return note

    def action(self) -> ActionBase:
        return a.Remember(note=self.note)
