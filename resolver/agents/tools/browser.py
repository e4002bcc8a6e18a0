"""The tool `browser`, which drives the sandbox's browser."""

from pydantic import Field

from resolver.agents.tools.base import Arguments, StatedRisk, Tag, Tool
from resolver.events import actions as a
from resolver.models.approval import SecurityRisk


class BrowserArguments(Arguments):
    """`browser`."""

    action_type = a.BrowseInteractive
    non_blank = ("code",)

    code: str = Field(description="One or more action calls, one a line.")
    security_risk: StatedRisk = None


TOOLS = (
    Tool(
        name="browser",
        arguments=BrowserArguments,
        tag=Tag("execute_browse", content="code"),
        examples={
            "browse": a.BrowseInteractive(
                code="goto('http://127.0.0.1:8000/login')", security_risk=SecurityRisk.LOW
            ),
            "steps": a.BrowseInteractive(
                code="fill('12', 'alice')\nclick('15')", security_risk=SecurityRisk.MEDIUM
            ),
        },
        requires="browser",
    ),
)
