"""Tests of the browser tool as it is offered to the model, in both dialects."""

from resolver.agents.codeact import CodeActAgent, system_text
from resolver.agents.definitions import AvailableTools
from resolver.agents.tags import parse_tags, write_tags
from resolver.agents.tools.calls import parse_tool_call
from resolver.agents.tools.registry import available_tools, tool_specs
from resolver.events.actions import BrowseInteractive, Invalid
from resolver.llm.replay import ReplayModel
from resolver.models.run import RequestedToolCall
from resolver.sandbox.browser_code import FORMS

CODE = "fill('12', 'a <b> & c')\nclick('15')"


def test_a_call_and_a_tag_are_the_same_action() -> None:
    call = RequestedToolCall(
        id="1", name="browser", arguments="{\"code\": \"fill('12', 'a <b> & c')\\nclick('15')\"}"
    )
    action = parse_tool_call(call)
    assert isinstance(action, BrowseInteractive) and action.code == CODE
    (tagged,) = parse_tags(write_tags(BrowseInteractive(code=CODE)))
    assert isinstance(tagged, BrowseInteractive) and tagged.code == CODE


def test_browser_calls_without_code_are_explained() -> None:
    call = RequestedToolCall(id="1", name="browser", arguments='{"code": " "}')
    answer = parse_tool_call(call)
    assert isinstance(answer, Invalid) and "code is empty" in answer.reason


def test_the_browser_tool_is_offered_only_if_there_is_a_browser() -> None:
    assert "browser" in available_tools(["browser"]) and "browser" not in available_tools(
        ["delegates"]
    )
    for may in (True, False):
        agent = CodeActAgent(ReplayModel([]), "tags", AvailableTools(browser=may))
        prompt = agent.system_prompt()
        assert ("execute_browse" in prompt.tools) is may
        assert ("<execute_browse " in prompt.content) is may


def test_the_prompt_before_it_stays_the_same() -> None:
    without = system_text("tags", available_tools([]))
    with_it = system_text("tags", available_tools(["browser"]))
    begin = with_it.index("Drive a browser")
    assert without.startswith(with_it[:begin].rstrip())
    assert system_text("tools", ("browser",)) == system_text("tools", ())


def test_every_action_is_described() -> None:
    (spec,) = (s for s in tool_specs(("browser",)))
    described = spec["function"]["description"]
    assert all(f"{name}(" in described for name in FORMS)
