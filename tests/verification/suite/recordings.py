"""Recorded executions of checks whose runners are not installed everywhere.

A recording holds, for the content of a tree, the exit code, the output and the report files of each
execution. It is played in a sandbox by a command that puts the files in their places. After a
change to a repository, `python -m tests.verification.suite.record` records them again.
"""

import json
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from shlex import quote
from typing import TypedDict

from resolver.models.verification import ProjectCheck

FOLDER = Path(__file__).parent / "recordings"

Instrumentation = Callable[[ProjectCheck, str], ProjectCheck]


class RecordedExecution(TypedDict):
    """One execution.

    reports: texts of the report files; the path is absolute, or relative to the tree. In all texts,
        `{root}` stands for the tree and `{reports}` for the folder of the reports.
    """

    exit_code: int
    output: str
    reports: dict[str, str]


def read_recordings(language: str) -> dict[str, list[RecordedExecution]]:
    """Return the executions of the whole check by tree."""
    file = recording_file(language)
    return json.loads(file.read_text()) if file.exists() else {}


def recording_file(language: str) -> Path:
    """Return the file of a language's recordings."""
    return FOLDER / f"{language.lower().replace(', ', '_')}.json"


recordings_of = cache(read_recordings)


def played(
    executions: list[RecordedExecution], instrument: Instrumentation, root: str, folder: Path
) -> Instrumentation:
    """Return an instrumentation whose commands do what the recorded ones did.

    A narrowed check gets the result of the whole one; repetitions beyond the last recorded one get
    that again.

    root: absolute path of the tree. folder: a new folder for what the commands read.
    """
    counts = Counter[str]()

    def play(check: ProjectCheck, reports: str) -> ProjectCheck:
        number = counts[check.command]
        counts[check.command] += 1
        recorded = executions[min(number, len(executions) - 1)]

        def fill(text: str) -> str:
            return text.replace("{root}", root).replace("{reports}", reports)

        source = folder / str(counts.total())
        source.mkdir(parents=True)
        (source / "output").write_text(fill(recorded["output"]))
        lines = [f"cat {quote(str(source / 'output'))}"]
        for index, (path, text) in enumerate(recorded["reports"].items()):
            (source / str(index)).write_text(fill(text))
            target = fill(path)
            lines.append(f"mkdir -p {quote(str(Path(target).parent))}")
            lines.append(f"cp {quote(str(source / str(index)))} {quote(target)}")
        command = "\n".join([*lines, f"exit {recorded['exit_code']}"])
        return instrument(check, reports).model_copy(update={"command": command})

    return play
