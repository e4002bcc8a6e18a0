"""Tests that share one thing of the machine run in one worker, as their marks ask."""

import pytest

pytestmark = pytest.mark.xdist_group("groups")


def test_a_mark_reaches_the_scheduler(request: pytest.FixtureRequest) -> None:
    """The scheduler goes by the end of a test's id; a pytest that xdist doesn't know leaves it."""
    if not hasattr(request.config, "workerinput"):
        return
    assert request.node.nodeid.endswith("@groups")
