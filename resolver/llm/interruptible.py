"""Calls of a model that end when the run is interrupted.

A request that was sent can't be taken back, and its answer may take minutes. So it is made in a
thread of its own, and the run only waits for it.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from contextvars import ContextVar

from resolver.config.background import call_in_background
from resolver.errors import StepInterrupted
from resolver.llm.base import ChatMessage, Model, ToolSpec, WrappedModel
from resolver.models.run import Completion

Interruptible = Callable[[Callable[[], None]], AbstractContextManager[None]]
"""Returns a context in which the function is called, in another thread, if the run is interrupted.
"""


class ModelCalls:
    """The calls of one model. A call that was interrupted does nothing more.

    interruptible: see `Interruptible`.
    """

    def __init__(self, interruptible: Interruptible) -> None:
        self._interruptible = interruptible

    def run(self, complete: Callable[[], Completion]) -> Completion:
        """Return the completion. Raises StepInterrupted, and what `complete` raises."""
        is_interrupted, has_ended = threading.Event(), threading.Event()

        def interrupt() -> None:
            is_interrupted.set()
            has_ended.set()

        def call() -> Completion:
            _INTERRUPTED.set(is_interrupted)
            return complete()

        with self._interruptible(interrupt):
            future: Future[Completion] = call_in_background(call, "model")
            future.add_done_callback(lambda _: has_ended.set())
            has_ended.wait()
        if not future.done():
            raise StepInterrupted
        return future.result()

    @staticmethod
    def require_wanted() -> None:
        """Raise StepInterrupted in the thread of a call that was interrupted."""
        interrupted = _INTERRUPTED.get()
        if interrupted is not None and interrupted.is_set():
            raise StepInterrupted

    def sleep(self, seconds: float) -> None:
        """Wait before a call is repeated. Raises StepInterrupted if it is interrupted meanwhile."""
        (_INTERRUPTED.get() or threading.Event()).wait(seconds)
        self.require_wanted()


_INTERRUPTED: ContextVar[threading.Event | None] = ContextVar("interrupted", default=None)
"""Set when nobody waits any more for the call that the present thread makes."""


class InterruptibleModel(WrappedModel):
    """A model whose calls raise StepInterrupted when the run is interrupted."""

    def __init__(self, model: Model, calls: ModelCalls) -> None:
        super().__init__(model)
        self._calls = calls

    def complete(
        self, messages: list[ChatMessage], tools: list[ToolSpec] | None = None
    ) -> Completion:
        return self._calls.run(lambda: self._model.complete(messages, tools))
