"""The tools `recall` and `remember`: what is known about a repository, and notes for later runs."""

from typing import Annotated

from pydantic import AfterValidator, Field, field_validator

from resolver.agents.tools.base import Arguments, Tag, TextOrEmpty, Tool
from resolver.events import actions as a

MAX_NOTE_LENGTH = 300
"""Maximum length of a note, in characters."""


class RecallArguments(Arguments):
    """`recall`."""

    action_type = a.Recall

    query: Annotated[TextOrEmpty, AfterValidator(str.strip)] = Field(
        description="The name of a skill, or words of what you want to know; empty for a list."
    )


class RememberArguments(Arguments):
    """`remember`."""

    action_type = a.Remember

    note: str = Field(
        description=f"One fact in a sentence or two, at most {MAX_NOTE_LENGTH} characters. It is "
        "read by somebody who knows nothing of this run."
    )

    @field_validator("note")
    @classmethod
    def _check_note(cls, note: str) -> str:
        note = " ".join(note.split())
        if not note:
            raise ValueError("note is empty")
        if len(note) > MAX_NOTE_LENGTH:
            raise ValueError(f"note has {len(note)} characters; say it in {MAX_NOTE_LENGTH}")
        return note


TOOLS = (
    Tool(
        name="recall",
        arguments=RecallArguments,
        tag=Tag(content="query"),
        examples={"recall": a.Recall(query="flaky tests")},
        requires="recall",
    ),
    Tool(
        name="remember",
        arguments=RememberArguments,
        tag=Tag(content="note"),
        examples={
            "remember": a.Remember(
                note="`make test` needs `make build` first; one suite takes 4 minutes."
            )
        },
        requires="remember",
    ),
)
