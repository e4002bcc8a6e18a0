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

import click
import yaml
from markdown_it import MarkdownIt

from resolver.cli.main import cli
from resolver.config.server_variables import ServerVariables
from resolver.config.settings import Settings, load_settings
from resolver.config.sources import repository_settings, variable_names

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "bench/README.md")
    if path.name not in {"CHANGELOG.md", "cli.md"}  # history; made from the commands themselves
)
MARK = re.compile(r"<!-- (?:output|not run: [^>]{10,}|executed by (?P<test>[\w/.]+)) -->")
OUTPUT_MARK = "<!-- output -->"
SHELL_LANGUAGES = ("", "sh", "bash", "shell", "console")
OTHER_VARIABLES = {"RESOLVER_SANDBOX_TOKEN", "RESOLVER_TEST_CACHE"}
"""Variables of Resolver that are no settings."""


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


def check_settings(example: Example) -> None:
    """Raise an error if a block with settings of a repository is not accepted as such."""
    if example.language in {"", "yaml"} and not example.mark:
        loaded = settings_in(example.text)
        if loaded.keys() & Settings.model_fields.keys() and not loaded.keys() & {
            "jobs",
            "with",
            "services",
        }:
            load_settings({}, {}, repository_settings(example.text.encode()))


def check_commands(example: Example) -> None:
    """Check the command lines of Resolver in a block."""
    if is_shell(example):
        for line in shell_lines(example.text):
            found = re.match(r"(?:[A-Z_]+=\S+ )*(?:\S+/)?resolver ([^|;&>$()\[\]]*)", line)
            if found:
                check_resolver_command(found[1].partition(" #")[0].split())


def check_variables(page: Path) -> None:
    """Check that the variables of Resolver that a page names set a setting."""
    kinds = (Settings, ServerVariables)
    fields = (pair for kind in kinds for pair in kind.model_fields.items())
    known = {variable for name, field in fields for variable in variable_names(name, field)}
    named = set(re.findall(r"\bRESOLVER_[A-Z_]+[A-Z]\b(?!\w|_|\*)", page.read_text()))
    assert named - known - OTHER_VARIABLES == set()


def inline_commands(page: Path) -> Iterator[str]:
    """Yield the command lines of Resolver that a page names in its sentences."""
    for block in MarkdownIt("commonmark").enable("table").parse(page.read_text()):
        for token in block.children or ():
            if token.type == "code_inline" and re.match(r"(?:\S+/)?resolver [a-z]", token.content):
                yield token.content


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


def check_resolver_command(words: list[str]) -> None:
    """Check a command line of Resolver: the command exists, and has these options."""
    command: click.Command = cli
    while isinstance(command, click.Group) and words and re.fullmatch("[a-z-]+", words[0]):
        found = command.get_command(click.Context(cli), words[0])
        assert found is not None, f"there is no command {words[0]}"
        command, words = found, words[1:]
    options = {name for parameter in command.params for name in parameter.opts} | {"--help"}
    options |= {name for parameter in command.params for name in parameter.secondary_opts}
    given = {word.partition("=")[0] for word in words if re.match("--[a-z]", word)}
    is_open = command.context_settings.get("ignore_unknown_options", False)
    assert is_open or given <= options, given - options
