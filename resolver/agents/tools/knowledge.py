"""The tool `recall`: what is known about a repository."""

from typing import Annotated

from pydantic import AfterValidator, Field

from resolver.agents.tools.base import Arguments, TextOrEmpty, Tool
from resolver.events import actions as a


class RecallArguments(Arguments):
    """`recall`."""

    action_type = a.Recall

    query: Annotated[TextOrEmpty, AfterValidator(str.strip)] = Field(
        description="The name of a skill; empty for the list of skills."
    )


TOOLS = (Tool(name="recall", arguments=RecallArguments, requires="recall"),)
