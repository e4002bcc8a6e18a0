"""Adjustments of requests for single providers, in one table with the reasons.

Prompt caching and thinking of Anthropic's models are in `anthropic.py`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Entry = Mapping[str, Any]
"""A model's entry in litellm's table; empty if there is none."""

TOOLS_UNCERTAIN = ("ollama/", "ollama_chat/")
"""Providers whose models are assumed not to support tool calls if litellm does not know them.

Unknown models of all other providers are assumed to support them.
"""

WITHOUT_OWN_CLIENT = ("azure/", "azure_text/", "text-completion-openai/")
"""Providers that litellm reaches through the openai package, which uses the shared client."""

_CLAUDE = r"(anthropic/|(bedrock|vertex_ai)/.*claude)"
LONGEST_OF_UNKNOWN = 32_000
"""Maximum number of output tokens for models whose limit is unknown."""


@dataclass(frozen=True)
class Fix:
    """An adjustment of the requests to some models.

    models: pattern that matches the beginning of litellm's name of the model.
    reason: why the adjustment is needed.
    sets: returns parameters to add, given the model's entry in litellm's table.
    leaves_out: parameters to remove.
    needs: the adjustment applies only if the request has this parameter.
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
    """Return the adjusted request. `request["model"]` is litellm's name of the model."""
    for fix in FIXES:
        applies = re.match(fix.models, request["model"]) and (not fix.needs or fix.needs in request)
        if applies:
            kept = {k: v for k, v in request.items() if k not in fix.leaves_out}
            request = {**kept, **fix.sets(entry)}
    return request
