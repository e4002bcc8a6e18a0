"""Tests of the answer to `help`, which needs no run."""

from dataclasses import dataclass, field
from pathlib import Path

from resolver.config.settings import load_settings
from resolver.models.run import Command, Trigger
from resolver.runs.conversation.command_handler import (
    CommandHandler,
    HandledCommand,
    RunsOfOtherJobs,
)
from tests.github import reports
from tests.parts.memory_forge import MemoryForge
from tests.runs.plain_values import run_request

FILES = {
    ".agents/agents/counter.md": "---\ndescription: Counts functions.\n---\nCount them all.\n",
    ".agents/agents/shout.md": "---\ndescription: Tells @octo/all | now, `a|b`.\n---\nDo it.\n",
    ".agents/agents/bad.md": "no head",
    ".agents/skills/version/SKILL.md":
        "---\ndescription: Changes the version.\ntriggers: [/bump]\n---\nBump it.\n",
    ".openhands/microagents/db.md": "---\ndescription: Knows.\ntriggers: [db]\n---\nKnow it.\n",
}  # fmt: skip


@dataclass
class FilesForge(MemoryForge):
    """A forge with Markdown files, and with the answers to people."""

    answers: list[str] = field(default_factory=list)

    def markdown_files(self, folder: str, max_files: int) -> dict[str, bytes]:
        return {path: text.encode() for path, text in FILES.items() if path.startswith(folder)}

    def post_answer(self, trigger: Trigger, text: str) -> None:
        self.answers.append(text)


def test_help_says_what_can_be_asked_and_starts_no_run(tmp_path: Path) -> None:
    settings, forge = load_settings({}, {}), FilesForge()
    trigger = reports.trigger(command=Command.HELP)
    targets = RunsOfOtherJobs(forge, settings, run_request(tmp_path).host, "run-1")  # type: ignore[arg-type]
    handled = CommandHandler(forge, settings).handle(trigger, "run-1", targets)  # type: ignore[arg-type]
    assert isinstance(handled, HandledCommand)
    assert (handled.state, handled.exit_code) == ("help", 0)
    [answer] = forge.answers
    for words in (
        "`@agent please fix this`", "`@agent stop`", "`@agent review`", "Adding the label `agent`",
        "| `/counter` | Counts functions. |", "| `/ReadOnlyAgent` |",
        "| `/version` | Changes the version. |", "| `/bump` |", "`@octo/all`",
    ):  # fmt: skip
        assert words in answer, words
    assert all(line.count(" | ") == 1 for line in answer.splitlines() if "`/shout`" in line)
    assert "`/bad`" not in answer and "`/db`" not in answer
