"""A model that repeats recorded replies. It asks nobody, so it costs nothing."""

from collections.abc import Sequence

from resolver.errors import ModelError, ReplayExhausted
from resolver.llm.base import ChatMessage, ToolSpec
from resolver.models.run import Completion


class ReplayModel:
    """Answers with recorded completions in their order, whatever is asked.

    Whether the run still fits its recording is judged from the events, not here.
    """

    def __init__(
        self,
        completions: Sequence[Completion | ModelError],
        *,
        name: str = "replay",
        supports_tools: bool = True,
    ) -> None:
        """completions: an error is raised where one is recorded in the place of a reply.
        supports_tools: True when the recorded run used native tool calls.
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
        """False: nobody looks."""
        return False

    def complete(
        self,
        messages: list[ChatMessage],  # noqa: ARG002 - what is asked does not matter
        tools: list[ToolSpec] | None = None,  # noqa: ARG002
    ) -> Completion:
        """The next recorded reply: its tokens as recorded, its cost and latency zero.

        Raises ReplayExhausted when all were given, and the errors that are recorded.
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
