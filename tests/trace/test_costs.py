"""Tests of the cost of each model and each service in traces."""

from resolver.events.lifecycle import ModelReplied, ServiceReplied
from resolver.events.state import State
from resolver.models.run import Completion, Tokens
from resolver.trace.view import cost_parts


def completion(model: str, cost: float | None) -> Completion:
    return Completion(model=model, text="so", tokens=Tokens(input=5, output=3), cost=cost)


BOTH = [
    ModelReplied(id=0, completion=completion("large", 0.25)),
    ModelReplied(id=1, completion=completion("large", None)),
    ServiceReplied(id=2, service="condenser", completion=completion("<b>small", 0.01)),
]


def test_each_of_several_models_and_services_has_a_line() -> None:
    assert cost_parts(State.fold(BOTH)) == (
        "large: at least $0.25 for 2 replies, 6 tokens out",
        "<b>small: $0.01 for 1 reply, 3 tokens out",
        "agent: at least $0.25 for 2 replies, 6 tokens out",
        "condenser: $0.01 for 1 reply, 3 tokens out",
    )
