"""Adjustments of messages for Anthropic's models.

They are cache breakpoints, thinking blocks sent back unchanged, and no empty texts.

https://docs.claude.com/en/docs/build-with-claude/prompt-caching
"""

from typing import Any

from resolver.llm.base import THINKING, ChatMessage

_MARK = {"type": "ephemeral"}
_MARKED_TURNS = 2
_THOUGHTS = ("thinking", "redacted_thinking")


def is_anthropic(model: str) -> bool:
    """Return True for Anthropic's models at Anthropic, Bedrock and Vertex, by litellm's name.

    Other models cache automatically (OpenAI, Gemini) or not at all, and some reject cache
    breakpoints.
    """
    provider, _, rest = model.partition("/")
    return (
        provider == "anthropic"
        or (provider == "bedrock" and "anthropic" in rest)
        or (provider == "vertex_ai" and rest.startswith("claude"))
    )


def with_cache_marks(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Return copies of the messages with cache breakpoints on the system message and two inputs.

    Each call repeats the conversation and adds a little. The breakpoint on the last input writes
    the cache up to there; the previous call wrote it up to the input before, so the breakpoint
    there reads it. This uses three of the four breakpoints that are allowed. An empty text block
    must not have one.
    """
    inputs = [
        index
        for index, message in enumerate(messages)
        if message.get("role") in ("user", "tool") and message.get("content")
    ]
    systems = [
        index
        for index, message in enumerate(messages)
        if message.get("role") == "system" and message.get("content")
    ]
    marked = {*systems[:1], *inputs[-_MARKED_TURNS:]}
    return [
        _marked(message) if index in marked else message for index, message in enumerate(messages)
    ]


def without_empty_texts(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Return copies of the messages without the empty text of replies that have tool calls.

    Anthropic rejects empty texts, and litellm would insert a sentence of its own.
    """
    return [
        {**message, "content": None}
        if message.get("tool_calls") and message.get("content") == ""
        else dict(message)
        for message in messages
    ]


def with_own_thinking(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Return copies of the messages with the thinking blocks of Anthropic's models only."""
    return [_with_own_thinking(message) for message in messages]


def may_think(messages: list[ChatMessage]) -> bool:
    """Return False if the model must not think in the next reply.

    That is the case after tool calls without thinking blocks, like those of another model:
    Anthropic rejects requests with thinking enabled then.
    """
    for message in reversed(messages):
        if message.get("role") == "assistant":
            return not message.get("tool_calls") or bool(_thoughts_of(message))
        if message.get("role") == "user":
            return True
    return True


def _thoughts_of(message: ChatMessage) -> list[dict[str, Any]]:
    return [block for block in message.get(THINKING, ()) if block.get("type") in _THOUGHTS]


def _with_own_thinking(message: ChatMessage) -> ChatMessage:
    kept = {name: value for name, value in message.items() if name != THINKING}
    thoughts = _thoughts_of(message)
    return {**kept, THINKING: thoughts} if thoughts else kept


def _marked(message: ChatMessage) -> ChatMessage:
    if message["role"] == "tool":
        # A tool result is a single block, so the breakpoint is a field of the message.
        return {**message, "cache_control": _MARK}
    content = message["content"]
    blocks: list[dict[str, Any]] = (
        [{"type": "text", "text": content}] if isinstance(content, str) else [*content]
    )
    return {**message, "content": [*blocks[:-1], {**blocks[-1], "cache_control": _MARK}]}
