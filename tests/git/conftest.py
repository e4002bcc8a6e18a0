"""The scenario that most tests of changes start from."""

from pathlib import Path

import pytest

from tests.git.scenario import Scenario, copy_scenario, make_repository, open_scenario
from tests.parts.templates import Templates


def build_scenario(place: Path) -> Scenario:
    files: dict[str | bytes, bytes | str] = {"README.md": "hello\n", "src/a.py": "a = 1\n"}
    return open_scenario(make_repository(place / "source", files), place)


@pytest.fixture
def scenario(templates: Templates, tmp_path: Path) -> Scenario:
    return copy_scenario(templates, build_scenario, tmp_path)
