"""How long a conversation a model takes, where litellm's table says so."""

from resolver.llm.config import ModelConfig
from resolver.llm.library import entry_of, wire_name


def context_window(config: ModelConfig) -> int | None:
    """Tokens that the model reads at most; None when the table does not have it.

    Loads litellm, which takes seconds where nothing has loaded it yet.
    """
    entry = entry_of(wire_name(config)) or {}
    tokens = entry.get("max_input_tokens") or entry.get("max_tokens")
    return tokens if isinstance(tokens, int) and tokens > 0 else None
