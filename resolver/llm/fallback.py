"""A model that switches between several models, by routing rules and after failures."""

from collections.abc import Callable, Mapping, Sequence

from resolver.errors import ContextWindowExceeded, ModelAuthError, ModelError
from resolver.llm.base import ChatMessage, Model, ToolSpec
from resolver.llm.replies import paid_together
from resolver.llm.router import RoutingRule, choose
from resolver.models.run import Completion

REFUSED = "content_filter"
"""`Completion.finish_reason` of a reply that the provider withheld."""

OnSwitch = Callable[[str, str, str], None]
"""Called before another model than the last one is asked, with the names of both and the reason."""


class SwitchingModel:
    """Queries the model that the rules choose, and the fallbacks in order if it fails or refuses.

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
        rules: Sequence[RoutingRule],
        *,
        on_switch: OnSwitch,
        share_left: Callable[[], float],
    ) -> None:
        """Create a model from several others.

        models: all models by name, including those that `first`, `fallbacks` and `rules` name.
        on_switch: called before another model than the last one is asked.
        share_left: returns the share of the run's budget that is left, from 0 to 1.
        """
        self._models = models
        self._first = first
        self._fallbacks = fallbacks
        self._rules = rules
        self._on_switch = on_switch
        self._share_left = share_left
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
        """True if all models that rules choose for images support them.

        Without such a rule all models have to, because any of them may get the conversation.
        """
        eyes = [self._models[rule.model] for rule in self._rules if rule.images]
        return all(model.supports_vision for model in eyes or self._models.values())

    def complete(
        self, messages: list[ChatMessage], tools: list[ToolSpec] | None = None
    ) -> Completion:
        """Return the reply of the first model that gives one. Raises the first error if none does.

        If no model replies but one refused, that refusal is returned.
        """
        chosen = choose(self._rules, messages, self._share_left())
        wanted, why = chosen or (self._first, "no rule asks for another model any more")
        line = list(dict.fromkeys([wanted, *self._fallbacks]))
        working = [name for name in line if name not in self._failed] or line
        why = self._failed.get(wanted, why)
        failure: ModelError | None = None
        refused: Completion | None = None
        for name in working:
            self._switch(name, why)
            try:
                reply = self._models[name].complete(messages, tools)
            except ContextWindowExceeded:
                raise
            except ModelError as error:
                if isinstance(error, ModelAuthError) and name == self._first:
                    raise
                failure = failure or error
                why = error.what
            else:
                refused = reply if refused is None else paid_together(refused, reply)
                if reply.finish_reason != REFUSED:
                    self._failed.pop(name, None)
                    return refused
                why = f"{name} refused to answer"
            self._failed[name] = why
        if refused is not None:
            return refused
        assert failure is not None
        raise failure

    def _switch(self, name: str, reason: str) -> None:
        if name != self._current:
            self._on_switch(self._current, name, reason)
            self._current = name
