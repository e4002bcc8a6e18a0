"""Size of a model's context window, from litellm's table."""

from resolver.llm.config import ModelConfig
from resolver.llm.library import entry_of, wire_name


def context_window(config: ModelConfig) -> int | None:
    """Return the maximum number of input tokens, None if it is not in the table.

    Loads litellm, which takes seconds the first time.
    """
    entry = entry_of(wire_name(config)) or {}
    tokens = entry.get("max_input_tokens") or entry.get("max_tokens")
    return tokens if isinstance(tokens, int) and tokens > 0 else None
