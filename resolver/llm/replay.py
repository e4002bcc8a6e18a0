"""A model that repeats recorded replies. It sends no requests, so it costs nothing."""

from collections.abc import Sequence

from resolver.errors import ModelError, ReplayExhausted
from resolver.llm.base import ChatMessage, ToolSpec
from resolver.models.run import Completion


class ReplayModel:
    """Returns recorded completions in order, whatever is asked.

    `resolver.controller.recovery` compares the run with its recording; this class does not.
    """

    def __init__(
        self,
        completions: Sequence[Completion | ModelError],
        *,
        name: str = "replay",
        supports_tools: bool = True,
    ) -> None:
        """Create a model that returns `completions`, raising the errors among them.

        supports_tools: True if the recorded run used native tool calls.
        """
        self._completions = tuple(completions)
        self._given = 0
        self._name = name
        self._supports_tools = supports_tools

    @property
    def name(self) -> str:
        return self._name

    @property
    def supports_tools(self) -> bool:
        return self._supports_tools

    @property
    def supports_vision(self) -> bool:
        """Always False: images make no difference to recorded replies."""
        return False

    def complete(
        self,
        messages: list[ChatMessage],  # noqa: ARG002 - replies don't depend on the request
        tools: list[ToolSpec] | None = None,  # noqa: ARG002
    ) -> Completion:
        """Return the next recorded reply: its tokens as recorded, its cost and latency zero.

        Raises ReplayExhausted if there is none left, and recorded errors.
        """
        if self._given == len(self._completions):
            count = len(self._completions)
            raise ReplayExhausted(
                f"the recording holds {count} model {'reply' if count == 1 else 'replies'} "
                "and the run asked for one more",
                "the run does not go as it was recorded: look for the first difference in the "
                "event log, or record the run anew with a live model",
            )
        completion = self._completions[self._given]
        self._given += 1
        if isinstance(completion, ModelError):
            raise completion
        return completion.model_copy(update={"cost": 0.0, "latency": 0.0})
