"""The tool `browser`, which drives the sandbox's browser."""

from pydantic import Field

from resolver.agents.tools.base import Arguments, Tag, Tool
from resolver.events import actions as a


class BrowserArguments(Arguments):
    """`browser`."""

    action_type = a.BrowseInteractive
    non_blank = ("code",)

    code: str = Field(description="One or more action calls, one a line.")


TOOLS = (
    Tool(
        name="browser",
        arguments=BrowserArguments,
        tag=Tag("execute_browse", content="code"),
        examples={
            "browse": a.BrowseInteractive(code="goto('http://127.0.0.1:8000/login')"),
            "steps": a.BrowseInteractive(code="fill('12', 'alice')\nclick('15')"),
        },
        requires="browser",
    ),
)
