"""Tests of whether a run gets a progress comment, and of its end without a final one."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from resolver.config.settings import Settings
from resolver.models.run import Command, Publication, TriggerKind
from resolver.runs.conversation.comments import (
    start_progress_comment,
)
from tests.github import reports
from tests.parts.memory_forge import MemoryForge
from tests.runs.plain_values import run_request

ANSWERED = "https://github.com/octo/demo/issues/12#issuecomment-1"
IN_THREAD = reports.trigger(kind=TriggerKind.REVIEW_COMMENT, command=Command.QUESTION)


@pytest.mark.parametrize(
    ("forge", "changes", "url", "has_comment"),
    [
        (MemoryForge(), {}, None, True),
        (MemoryForge(), {"publish": False}, None, False),
        (MemoryForge(), {}, ANSWERED, False),
        (MemoryForge(), {"trigger": IN_THREAD}, None, False),
        (None, {}, None, False),
    ],
)
def test_a_run_has_a_progress_comment_where_nothing_else_has_the_answer(
    tmp_path: Path,
    forge: MemoryForge | None,
    changes: dict[str, Any],
    url: str | None,
    has_comment: bool,
) -> None:
    request = replace(run_request(tmp_path), **changes)
    reporter = start_progress_comment(request, Settings(), Publication(comment_url=url), forge)
    if reporter is not None:
        reporter.close()
    assert (reporter is not None) is has_comment
