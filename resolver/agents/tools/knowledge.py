"""The tool `recall`: what is known about a repository."""

from typing import Annotated

from pydantic import AfterValidator, Field

from resolver.agents.tools.base import Arguments, Tag, TextOrEmpty, Tool
from resolver.events import actions as a


class RecallArguments(Arguments):
    """`recall`."""

    action_type = a.Recall

    query: Annotated[TextOrEmpty, AfterValidator(str.strip)] = Field(
        description="The name of a skill, or words of what you want to know; empty for a list."
    )


TOOLS = (
    Tool(
        name="recall",
        arguments=RecallArguments,
        tag=Tag(content="query"),
        examples={"recall": a.Recall(query="flaky tests")},
        requires="recall",
    ),
)
