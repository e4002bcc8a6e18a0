"""The commands in the pages of the documentation exist, with the options that the pages show."""

import re
import shlex
from collections.abc import Iterator

import click
from markdown_it import MarkdownIt

from resolver.cli.main import cli
from tests.codebase.test_links import PAGES, ROOT
from tests.parts.cases import check_each

COMMAND = re.compile(r"\s*(?:[A-Z_]+=\S* )*(?:\.venv/bin/)?resolver ([a-z].*)")


def documented_commands() -> Iterator[tuple[str, str]]:
    """Yield the page and the arguments of each command in a block of code."""
    for page in PAGES:
        if page.name in {"CHANGELOG.md", "cli.md"}:  # history; made from the commands themselves
            continue
        for block in MarkdownIt("commonmark").parse(page.read_text()):
            if block.type in {"fence", "code_block"}:
                for line in block.content.replace("\\\n", " ").splitlines():
                    if found := COMMAND.match(line):
                        yield str(page.relative_to(ROOT)), re.split(r" [|>&]|;", found[1])[0]


def test_the_documented_commands_have_these_names_and_options() -> None:
    check_each(sorted(set(documented_commands())), lambda case: parse(case[1]))


def parse(text: str) -> None:
    """Parse a command line. Raises UsageError of click for an unknown command or option."""
    arguments = shlex.split(text, comments=True)
    command: click.Command = cli
    while isinstance(command, click.Group):
        _, found, arguments = command.resolve_command(click.Context(command), arguments)
        assert found
        command = found
    command.make_parser(click.Context(command, **command.context_settings)).parse_args(arguments)
