"""Every fuzz target holds for its seeds, for what was found before and for a few generated inputs."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.fuzz.found import FOUND
from tests.fuzz.target import examples_of, inputs
from tests.fuzz.targets import TARGETS, close_resources


@pytest.fixture(scope="module", autouse=True)
def resources() -> Iterator[None]:
    yield
    close_resources()


@pytest.mark.parametrize("name", TARGETS)
def test_any_input_is_parsed_or_refused_with_one_of_resolvers_errors(name: str) -> None:
    target = TARGETS[name]
    for data in (*examples_of(target), *FOUND.get(name, ())):
        target.run(data)

    @settings(
        max_examples=max(1, settings.default.max_examples // 2),
        phases=[Phase.explicit, Phase.generate],  # `make fuzz` shrinks what fails
        suppress_health_check=list(HealthCheck),
    )
    @given(inputs(target))
    def run(data: bytes) -> None:
        target.run(data)

    run()


def test_every_target_says_what_it_parses() -> None:
    assert [name for name, target in TARGETS.items() if not target.description.endswith(".")] == []
    assert set(FOUND) <= set(TARGETS)


@given(st.data())
def test_generated_inputs_stay_within_their_size(data: st.DataObject) -> None:
    target = TARGETS["written_markdown"]
    assert len(data.draw(inputs(target, max_size=300))) <= 300
