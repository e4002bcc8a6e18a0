"""A model that switches to the next of several models after failures."""

from collections.abc import Callable, Mapping, Sequence

from resolver.errors import ContextWindowExceeded, ModelAuthError, ModelError
from resolver.llm.base import ChatMessage, Model, ToolSpec
from resolver.llm.litellm_model import add_usage
from resolver.models.run import Completion

REFUSED = "content_filter"
"""`Completion.finish_reason` of a reply that the provider withheld."""

OnSwitch = Callable[[str, str, str], None]
"""Called before another model than the last one is asked, with the names of both and the reason."""


class SwitchingModel:
    """Queries the first model, and the fallbacks in order if it fails or refuses.

    A model that failed is not queried again in this run unless all have failed, because each switch
    loses the prompt cache. A conversation that is too long is not a failure. A key that the first
    model does not accept is a configuration error and is raised, not hidden by spending money
    elsewhere; a fallback whose key is not accepted is skipped.
    """

    def __init__(
        self,
        models: Mapping[str, Model],
        first: str,
        fallbacks: Sequence[str],
        *,
        on_switch: OnSwitch,
    ) -> None:
        """Create a model from several others.

        models: all models by name, including those that `first` and `fallbacks` name.
        on_switch: called before another model than the last one is asked.
        """
        self._models = models
        self._first = first
        self._fallbacks = fallbacks
        self._on_switch = on_switch
        self._current = first
        self._failed: dict[str, str] = {}

    @property
    def name(self) -> str:
        return self._first

    @property
    def supports_tools(self) -> bool:
        """True if all models support tools, because a run's conversation has only one format."""
        return all(model.supports_tools for model in self._models.values())

    @property
    def supports_vision(self) -> bool:
        """True if all models support images, because any of them may get the conversation."""
        return all(model.supports_vision for model in self._models.values())

    def complete(
        self, messages: list[ChatMessage], tools: list[ToolSpec] | None = None
    ) -> Completion:
        """Return the reply of the first model that gives one. Raises the first error if none does.

        If no model replies but one refused, that refusal is returned.
        """
        candidates = list(dict.fromkeys([self._first, *self._fallbacks]))
        names = [name for name in candidates if name not in self._failed] or candidates
        reason = self._failed.get(self._first, "all other models have failed")
        first_error: ModelError | None = None
        refusal: Completion | None = None
        for name in names:
            self._switch(name, reason)
            try:
                reply = self._models[name].complete(messages, tools)
            except ContextWindowExceeded:
                raise
            except ModelError as error:
                if isinstance(error, ModelAuthError) and name == self._first:
                    raise
                first_error = first_error or error
                reason = error.what
            else:
                refusal = reply if refusal is None else add_usage(refusal, reply)
                if reply.finish_reason != REFUSED:
                    self._failed.pop(name, None)
                    return refusal
                reason = f"{name} refused to answer"
            self._failed[name] = reason
        if refusal is not None:
            return refusal
        assert first_error is not None
        raise first_error

    def _switch(self, name: str, reason: str) -> None:
        if name != self._current:
            self._on_switch(self._current, name, reason)
            self._current = name
