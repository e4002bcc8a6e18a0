"""A module's tests share its server, so they run in one worker."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each module a group of its own: starting a server takes longer than most of its tests."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
