"""The examples in the pages of the documentation, and the checks of what they name.

An example is a fenced or indented block. A block of shell lines that can't be executed says so in
a comment before it: `<!-- output -->` for what a program prints, `<!-- not run: REASON -->` for the
rest.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml
from markdown_it import MarkdownIt

from resolver.config.settings import Settings

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "bench/README.md")
    if path.name not in {"CHANGELOG.md", "cli.md"}  # history; made from the commands themselves
)
MARK = re.compile(r"<!-- (?:output|not run: [^>]{10,}|executed by (?P<test>[\w/.]+)) -->")
OUTPUT_MARK = "<!-- output -->"
SHELL_LANGUAGES = ("", "sh", "bash", "shell", "console")


@dataclass(frozen=True)
class Example:
    """A block of a page.

    language: of a fence, "" for an indented block. line: from 1. mark: the comment before it.
    """

    page: Path
    line: int
    language: str
    text: str
    mark: str = ""

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@cache
def examples(page: Path) -> tuple[Example, ...]:
    """Return the blocks of a page, with their marks."""
    mark, found = "", []
    for token in MarkdownIt("commonmark").enable("table").parse(page.read_text()):
        if token.type in {"fence", "code_block"} and token.map:
            language = token.info.strip() if token.type == "fence" else ""
            found.append(Example(page, token.map[0] + 1, language, token.content, mark))
        comment = token.content.strip() if token.type == "html_block" else ""
        mark = comment if MARK.fullmatch(comment) else ""
    return tuple(found)


def shell_examples(page: Path) -> Iterator[Example]:
    """Yield the blocks of a page that are shell lines, also those that are marked as not run."""
    return (example for example in examples(page) if is_shell(example))


def is_shell(example: Example) -> bool:
    """Return True if a block is meant for a shell."""
    if example.mark == OUTPUT_MARK or example.language not in SHELL_LANGUAGES:
        return False
    starts = ("{", "@agent ", "---\n")
    return not example.text.startswith(starts) and not settings_in(example.text)


def settings_in(text: str) -> dict[str, object]:
    """Return the mapping of a block that is YAML with settings or a workflow's step, or {}."""
    try:
        loaded = yaml.safe_load(text)
    except yaml.YAMLError:
        return {}
    known = {*Settings.model_fields, "with"}
    return loaded if isinstance(loaded, dict) and loaded.keys() & known else {}


def shell_lines(text: str) -> list[str]:
    """Return the commands of a block, with the lines that one command spans joined."""
    lines: list[str] = []
    open_line = ""
    for line in text.replace("\\\n", " ").splitlines():
        open_line = f"{open_line}\n{line}" if open_line else line
        try:
            shlex.split(open_line, comments=True)
        except ValueError:
            continue  # a quotation is open
        lines.append(open_line)
        open_line = ""
    return [line for line in lines if shlex.split(line, comments=True)]
