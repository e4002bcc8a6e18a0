"""What single providers need to be asked differently for, in one table with the reasons.

Marks for Anthropic's prompt cache and its thinking are in `anthropic.py`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Entry = Mapping[str, Any]
"""What litellm's table says of a model; empty when it is not there."""

TOOLS_UNCERTAIN = ("ollama/", "ollama_chat/")
"""A model that litellm does not know is expected to take tool calls, but for these, whose models
differ."""

WITHOUT_OWN_CLIENT = ("azure/", "azure_text/", "text-completion-openai/")
"""litellm reaches these through the openai package, which gets the shared client."""

_CLAUDE = r"(anthropic/|(bedrock|vertex_ai)/.*claude)"
LONGEST_OF_UNKNOWN = 32_000
"""Tokens that a reply of a model may have whose limit is not known."""


@dataclass(frozen=True)
class Fix:
    """A change to the requests to some models.

    models: pattern that litellm's name of the model starts with.
    sets: parameters to add, from what litellm knows of the model.
    leaves_out: parameters not to send.
    needs: parameter without which the fix does not apply.
    """

    models: str
    reason: str
    sets: Callable[[Entry], dict[str, Any]] = lambda _: {}
    leaves_out: tuple[str, ...] = ()
    needs: str = ""


FIXES = (
    Fix(
        r"anthropic/",
        "Anthropic demands a limit. litellm's guess for a model that it does not know, 4,096, and "
        "for one that thinks, 4,096 beside the thoughts, cut the writing of a file.",
        sets=lambda entry: {"max_tokens": entry.get("max_output_tokens", LONGEST_OF_UNKNOWN)},
    ),
    Fix(
        _CLAUDE,
        "Claude refuses a temperature while it thinks.",
        leaves_out=("temperature",),
        needs="reasoning_effort",
    ),
    Fix(
        r"(openai|azure)/responses/",
        "The Responses API keeps each conversation for 30 days unless told not to; its reasoning "
        "must then be carried by us, and comes only when it is asked for.",
        sets=lambda entry: {
            "store": False,
            **(
                {"include": ["reasoning.encrypted_content"]}
                if entry.get("supports_reasoning")
                else {}
            ),
        },
    ),
    Fix(
        r"ollama(_chat)?/",
        "Ollama forgets without a word what is beyond its default context of 4,096 tokens.",
        sets=lambda _: {"num_ctx": 32_768},
    ),
)


def fixed(request: dict[str, Any], entry: Entry) -> dict[str, Any]:
    """The request as the model wants it. `request["model"]` is litellm's name."""
    for fix in FIXES:
        applies = re.match(fix.models, request["model"]) and (not fix.needs or fix.needs in request)
        if applies:
            kept = {k: v for k, v in request.items() if k not in fix.leaves_out}
            request = {**kept, **fix.sets(entry)}
    return request
