"""What Anthropic's models need of messages that others don't: marks for the prompt cache, their own
thinking sent back unchanged, and no empty texts.
"""

from typing import Any

from resolver.llm.base import THINKING, ChatMessage

_MARK = {"type": "ephemeral"}
_MARKED_TURNS = 2
_THOUGHTS = ("thinking", "redacted_thinking")


def is_anthropic(model: str) -> bool:
    """True for Anthropic's models at Anthropic, Bedrock and Vertex, by litellm's name of them.

    Others cache by themselves (OpenAI, Gemini) or not at all, and some refuse the marks.
    """
    provider, _, rest = model.partition("/")
    return (
        provider == "anthropic"
        or (provider == "bedrock" and "anthropic" in rest)
        or (provider == "vertex_ai" and rest.startswith("claude"))
    )


def with_cache_marks(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Copies of the messages, with marks on the system message and the last two inputs.

    Each call repeats the conversation and adds a little. The mark on the last input writes the
    cache up to there; the one before it is where the call before wrote, so it is read. Of four
    allowed marks three are used. A text block that is empty must not carry one.
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
    """Copies of the messages, where a reply of tool calls alone has no text at all.

    Anthropic refuses an empty text, and litellm would put a sentence of its own in its place.
    """
    return [
        {**message, "content": None}
        if message.get("tool_calls") and message.get("content") == ""
        else dict(message)
        for message in messages
    ]


def with_own_thinking(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Copies of the messages, with what an Anthropic model thought and no other's thoughts."""
    return [_with_own_thinking(message) for message in messages]


def may_think(messages: list[ChatMessage]) -> bool:
    """False while the tool calls of the last reply came without thoughts, as another model's do:
    Anthropic refuses to think on behind them."""
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
        # A tool's result is one block, and its mark stands beside it.
        return {**message, "cache_control": _MARK}
    content = message["content"]
    blocks: list[dict[str, Any]] = (
        [{"type": "text", "text": content}] if isinstance(content, str) else [*content]
    )
    return {**message, "content": [*blocks[:-1], {**blocks[-1], "cache_control": _MARK}]}
