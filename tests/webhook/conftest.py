"""A module's tests share its server, so they run in one worker."""

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each module a group of its own: starting a server takes longer than most of its tests."""
    for item in items:
        if item.nodeid.startswith("tests/webhook/"):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
