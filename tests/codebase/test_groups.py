"""Tests of running tests that share a resource of the machine in one worker."""

import pytest

pytestmark = pytest.mark.xdist_group("groups")


def test_a_mark_reaches_the_scheduler(request: pytest.FixtureRequest) -> None:
    """The scheduler reads the end of a test's id, which an incompatible pytest leaves unchanged."""
    if not hasattr(request.config, "workerinput"):
        return
    assert request.node.nodeid.endswith("@groups")
