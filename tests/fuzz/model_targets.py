"""Targets: what models and MCP servers answer."""

import json
from functools import cache
from typing import Any

from pydantic import SecretStr

from resolver.agents.replies import find_fenced_code, read_reply
from resolver.agents.tags import parse_tags, write_tags
from resolver.errors import ModelError
from resolver.events.actions import Invalid
from resolver.events.lifecycle import ModelReplied
from resolver.events.log import ACTION_TYPES, dump_line, make_storable, parse_line
from resolver.llm.base import ModelConfig
from resolver.llm.failures import model_failure_of, retry_after
from resolver.mcp.results import MAX_TEXT_CHARACTERS, observation_of_result
from resolver.mcp.tool_listing import (
    MAX_TOTAL_CHARACTERS,
    ToolListing,
    choose_tools,
    reduce_schema,
)
from resolver.models.run import Completion, RequestedToolCall
from resolver.sandbox.browser_code import CodeError, read_code
from resolver.security.invisible_text import without_invisible
from tests.fuzz.target import as_json, as_text, fuzzed
from tests.llm.conftest import KEY, build
from tests.parts.model_endpoint import ModelEndpoint, encode, raw, reply, tool_calls
from tests.parts.providers.answer import Request

REPLIES = (
    "Let me look.\n<execute_bash>\nls -la\n</execute_bash>",
    '<str_replace_editor command="create" path="a.py">\n<file_text>\nx = 1\n</file_text>\n'
    "</str_replace_editor>\n<think>hm</think>",
    "<finish>\nDone.\n<cause>c</cause>\n<change>d</change>\n<threads>T1 addressed: x</threads>\n</finish>",
    "<execute_ipython>\nprint('</execute_bash>')\n</execute_ipython>\n```bash\nls\n```",
)
TAGS = (
    "<execute_bash> </execute_bash> <execute_ipython> </execute_ipython> <finish> </finish> <think> "
    '</think> <str_replace_editor command="view" path="x"/> <old_str> </old_str> <file_text> '
    '<execute_bash end="E"> </execute_bash E> timeout="9" &lt; ``` ` <cause> <threads> T1 addressed: '
    "<view_range>1-4</view_range> <execute_browse> goto( ) click('1')"
)


def _check_actions(actions: Any) -> None:
    for action in actions:
        assert isinstance(action, ACTION_TYPES)
        _event_is_storable(action)


@fuzzed(*REPLIES, tokens=TAGS)
def tag_reply(data: bytes) -> None:
    """A reply in the tag dialect: actions that can be logged and written again."""
    text = as_text(data)
    for is_truncated in (False, True):
        actions = parse_tags(text, is_truncated)
        _check_actions(actions)
        for action in actions:
            if not isinstance(action, Invalid) and not action.thought:
                assert parse_tags(write_tags(action)) == (action,)
    find_fenced_code(text)


CALL = {
    "text": "I look.",
    "calls": [
        {"name": "execute_bash", "arguments": {"command": "ls", "timeout": 5.0}},
        {"name": "str_replace_editor", "arguments": {"command": "view", "path": "a", "view_range": [1, 9]}},
        {"name": "finish", "arguments": {"message": "done", "task_completed": True, "threads": [
            {"id": "T1", "addressed": True, "answer": "x"}]}},
        {"name": "plan", "arguments": {"items": [{"title": "a", "status": "done"}]}},
    ],
}  # fmt: skip


@fuzzed(objects=(CALL,))
def tool_call_reply(data: bytes) -> None:
    """A reply with tool calls: at least one action, each of which can be logged."""
    value = as_json(data)
    value = value if isinstance(value, dict) else {"calls": [value]}
    calls = value.get("calls")
    requested = []
    for number, call in enumerate(calls if isinstance(calls, list) else [calls]):
        call = call if isinstance(call, dict) else {"name": "finish", "arguments": call}
        arguments = call.get("arguments")
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        name = str(call.get("name"))
        requested.append(RequestedToolCall(id=f"c{number}", name=name, arguments=text))
    completion = Completion(model="m", text=str(value.get("text")), tool_calls=tuple(requested))
    for dialect in ("tools", "tags"):
        actions = read_reply(completion, dialect)  # type: ignore[arg-type]
        assert actions
        _check_actions(actions)


@fuzzed(
    '{"command": "ls"}',
    '{"command": "ls", "timeout": 1',
    '"x"',
    tokens='{ } " \\u \\ud800 [ : command NaN 1e999',
)
def tool_call_arguments(data: bytes) -> None:
    """Arguments of a tool call as text: an action, or what is wrong with them."""
    call = RequestedToolCall(id="c", name="execute_bash", arguments=as_text(data))
    for finish_reason in ("stop", "length"):
        completion = Completion(model="m", tool_calls=(call,), finish_reason=finish_reason)
        _check_actions(read_reply(completion, "tools"))


HELLO = [{"role": "user", "content": "hello"}]
PROTOCOLS = {
    "openai": ("openai/gpt-4o", "/v1/chat/completions"),
    "responses": ("openai/responses/gpt-5", "/v1/responses"),
    "anthropic": ("anthropic/claude-sonnet-4-5", "/v1/messages"),
    "gemini": ("gemini/gemini-2.5-pro", "/m:generateContent"),
    "ollama": ("ollama_chat/llama3.1", "/api/chat"),
    "bedrock": ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", "/model/m/converse"),
}
"""Each protocol by name: a model that is asked by it, and the path of its requests."""


@cache
def endpoint() -> ModelEndpoint:
    """Return the endpoint that all targets of providers ask; `close_endpoint` closes it."""
    return ModelEndpoint()


def close_endpoint() -> None:
    if endpoint.cache_info().currsize:
        endpoint().close()
        endpoint.cache_clear()


def _answers(protocol: str) -> tuple[Any, ...]:
    """Return a reply in words and one with two tool calls, as the protocol words them."""
    request = Request(PROTOCOLS[protocol][1], {}, {"model": "m", "messages": HELLO})
    calls = tool_calls(
        [("execute_bash", {"command": "ls"}), ("finish", {"message": "x"})], text="I"
    )
    spoken = reply("Hello.", reasoning="Well", signature="s")
    return tuple(json.loads(encode(answer, request)[1]) for answer in (spoken, calls))


def _streams(protocol: str) -> tuple[bytes, ...]:
    name, path = PROTOCOLS[protocol]
    paths = {"gemini": "/m:streamGenerateContent", "bedrock": "/model/m/converse-stream"}
    request = Request(paths.get(protocol, path), {}, {"model": name, "stream": True})
    return (encode(reply("Hello.", reasoning="Well"), request)[1],)


def _complete(protocol: str, data: bytes) -> None:
    """Ask a model by the protocol; `data` is the body of the answer."""
    is_object = data.lstrip().startswith(b"{")
    content_type = "application/json" if is_object else "text/event-stream"
    endpoint().answer_with(lambda _: raw(data, content_type=content_type))
    asked = build(endpoint(), PROTOCOLS[protocol][0], retries=0, stream=not is_object)
    try:
        completion = asked.model.complete(HELLO)
    except ModelError as error:
        assert error.next_step and KEY not in error.what
        return
    _event_is_storable(ModelReplied(completion=completion))
    assert completion.cost is None or 0 <= completion.cost < float("inf")
    assert 0 <= completion.tokens.cached <= completion.tokens.input


@fuzzed(*_streams("openai"), objects=_answers("openai"), tokens=("data: ", "[DONE]", "\n\n"))
def openai_chat_answer(data: bytes) -> None:
    """Answer of OpenAI's chat completions, whole or streamed: a completion or a ModelError."""
    _complete("openai", data)


@fuzzed(*_streams("responses"), objects=_answers("responses"), tokens=("data: ", "event: ", "\n\n"))
def openai_responses_answer(data: bytes) -> None:
    """Answer of OpenAI's responses, whole or streamed: a completion or a ModelError."""
    _complete("responses", data)


@fuzzed(*_streams("anthropic"), objects=_answers("anthropic"), tokens=("data: ", "event: ", "\n\n"))
def anthropic_answer(data: bytes) -> None:
    """Answer of Anthropic's messages, whole or streamed: a completion or a ModelError."""
    _complete("anthropic", data)


@fuzzed(*_streams("gemini"), objects=_answers("gemini"), tokens=("data: ", "\r\n\r\n"))
def gemini_answer(data: bytes) -> None:
    """Answer of Gemini, whole or streamed: a completion or a ModelError."""
    _complete("gemini", data)


@fuzzed(objects=_answers("ollama"))
def ollama_answer(data: bytes) -> None:
    """Answer of Ollama: a completion or a ModelError."""
    _complete("ollama", data)


@fuzzed(*_streams("bedrock"), objects=_answers("bedrock"))
def bedrock_answer(data: bytes) -> None:
    """Answer of Bedrock's converse, whole or as an event stream: a completion or a ModelError."""
    _complete("bedrock", data)


@fuzzed(
    f'{{"error": {{"message": "context length {KEY}", "type": "x"}}}}', "<html><body>502 Bad Gateway",
    objects=({"error": {"message": "quota", "code": "429", "details": [{"retryDelay": "3s"}]}},),
    tokens="error message retry-after 30 Wed, 21 Oct 2015 07:28:00 GMT",
)  # fmt: skip
def model_failure(data: bytes) -> None:
    """Error text and headers of a provider: a short line without the key."""
    text = as_text(data)
    for status in (200, 400, 401, 429, 503):
        config = ModelConfig(model="m", timeout=60.0, api_key=SecretStr(KEY))
        failure = model_failure_of(config, status, text, {"retry-after": text})
        assert failure.error.next_step and KEY not in failure.error.what + failure.reason
    for name in ("retry-after", "retry-after-ms"):
        seconds = retry_after({name: text})
        assert seconds is None or 0 <= seconds < float("inf")


RESULT = {
    "content": [
        {"type": "text", "text": "a"},
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "file:///a", "text": "x"}},
        {"type": "resource_link", "uri": "https://x/y", "name": "n"},
    ],
    "structuredContent": {"a": [1]},
    "isError": False,
}


@fuzzed(objects=(RESULT,))
def mcp_result(data: bytes) -> None:
    """Result of an MCP tool: an observation of limited length, with pictures of known types only."""
    value = as_json(data)
    found = observation_of_result(
        value if isinstance(value, dict) else {"content": value},
        without_invisible,
        lambda kept: None,
    )
    assert len(found.content) < MAX_TEXT_CHARACTERS + 500
    assert all(url.startswith("data:image/") for url in found.images)
    _event_is_storable(found)


def _event_is_storable(event: Any) -> None:
    stored = parse_line(dump_line(make_storable(event)))  # infinity in free data becomes text
    assert parse_line(dump_line(stored)) == stored


TOOL = {
    "name": "search", "description": "Searches.", "inputSchema": {
        "type": "object", "required": ["q"], "$defs": {"p": {"type": "object", "properties": {}}},
        "properties": {"q": {"type": ["string", "null"], "enum": ["a", "b"]}, "p": {"$ref": "#/$defs/p"},
                       "n": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"type": "integer"}}]}},
    },
}  # fmt: skip


@fuzzed(objects=({"tools": [TOOL, {"name": "other"}]},))
def mcp_listing(data: bytes) -> None:
    """Tools that an MCP server lists: schemas of limited size, and names that are plain."""
    value = as_json(data)
    listed = value.get("tools") if isinstance(value, dict) else value
    tools = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    choice = choose_tools([ToolListing("s", tools, lambda name: True)], without_invisible)
    assert sum(len(tool.model_dump_json()) for tool in choice.tools) <= MAX_TOTAL_CHARACTERS
    assert reduce_schema(value, without_invisible)["type"] == "object"


@fuzzed(
    "click('12', button='left')\nfill('3', \"x\")", "goto('https://a.b')\nscroll(0, -200)\nsend_msg_to_user(\"\"\"a\"\"\")",
    tokens="click( fill( goto( scroll( ' \" \"\"\" ) , = # \\ f' b' * ** [1] {'a': 1} lambda not -",
)  # fmt: skip
def browser_code(data: bytes) -> None:
    """Code for the browser: steps, or an explanation of what is wrong."""
    try:
        steps = read_code(as_text(data))
    except CodeError as error:
        assert str(error)
    else:
        assert all(step.name for step in steps)
