"""The interface to a span, independent of the library that exports it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, Protocol

AttributeValue = str | bool | int | float | Sequence[str]
Attributes = Mapping[str, AttributeValue]

SpanRole = Literal["internal", "client"]
"""`client` for a call of another service, such as a model's endpoint."""


class RunSpan(Protocol):
    """A started span. All times are given, because the events of the log have them."""

    @property
    def traceparent(self) -> str:
        """The ids of the trace and the span: https://www.w3.org/TR/trace-context/#traceparent-header."""
        ...

    def start_child(
        self, name: str, at: datetime, attributes: Attributes, role: SpanRole = "internal"
    ) -> "RunSpan":
        """Start a span below this one."""
        ...

    def set(self, attributes: Attributes) -> None:
        """Set attributes, replacing those with the same name."""
        ...

    def rename(self, name: str) -> None:
        """Replace the name."""
        ...

    def add_event(self, name: str, at: datetime, attributes: Attributes) -> None:
        """Add something that happened at one moment of the span."""
        ...

    def link(self, traceparent: str) -> None:
        """Link another trace. Has no effect if the text is not a `traceparent`."""
        ...

    def end(self, at: datetime, error: str = "") -> None:
        """End the span. error: a short code of the error that it ended with; "" for none."""
        ...
