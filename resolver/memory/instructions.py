"""The repository's own instructions for agents, read at the default branch and bounded."""

from collections.abc import Callable
from dataclasses import dataclass

from resolver.events.observations import RecallResult
from resolver.memory.text import cut_middle

FILES = (
    "AGENTS.md",
    ".github/copilot-instructions.md",
    "CLAUDE.md",
    ".cursorrules",
    ".openhands/microagents/repo.md",
)
"""Where repositories keep instructions, in the order they are read."""

MAX_FILE = 16_000
MAX_TOTAL = 32_000
"""Characters; what is over is cut, and said so."""


@dataclass(frozen=True)
class Instructions:
    """What the repository tells agents. `text` is empty when it has no such file."""

    text: str = ""
    sources: tuple[str, ...] = ()

    def as_result(self) -> RecallResult:
        """The same as an observation, for an agent that asks for it during a run."""
        return RecallResult(content=self.text, sources=self.sources)


def read_instructions(read: Callable[[str], bytes | None]) -> Instructions:
    """The repository's instructions.

    read: gives a file's bytes by its path at the default branch, None when there is none. Two
    files with one content are read once; a link committed in place of a file is skipped, since
    its target is read under its own name.
    """
    seen: set[str] = set()
    parts: list[str] = []
    sources: list[str] = []
    room = MAX_TOTAL
    for path in FILES:
        data = read(path) or b""
        text = _without_front_matter(data.decode(errors="replace")).strip()
        if text and text not in seen and not _is_link(text) and room > 0:
            seen.add(text)
            sources.append(path)
            shown = cut_middle(text, min(MAX_FILE, room), f"The whole file is {path}.")
            parts.append(f"## {path}\n\n{shown}")
            room -= len(shown)
    return Instructions("\n\n".join(parts), tuple(sources))


def _is_link(text: str) -> bool:
    return text.removeprefix("./").removeprefix("../") in FILES


def _without_front_matter(text: str) -> str:
    """The text after a leading YAML block, as skill files have it."""
    text = text.removeprefix("\ufeff")
    if not text.startswith("---\n"):
        return text
    end = text.find("\n---\n", 3)
    return text[end + len("\n---\n") :] if end >= 0 else text
