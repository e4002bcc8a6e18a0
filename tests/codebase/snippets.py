"""The examples in the pages of the documentation, and the checks of each kind of example.

An example is a fenced or indented block. What it is follows from its content: shell lines, a
workflow, settings, an agent or a skill, Python, JSON. A block that is none of these says so in a
comment before it: `<!-- output -->` for what a program prints, `<!-- not run: REASON -->` for the
rest.
"""

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import click
import yaml
from markdown_it import MarkdownIt

from resolver.agents.definitions import read_definition
from resolver.cli.main import cli
from resolver.config.bounded_yaml import read_yaml
from resolver.config.declaration import setting_arguments
from resolver.config.setting_names import variable_names
from resolver.config.settings import Settings, load_settings, repository_settings
from resolver.errors import ResolverError
from resolver.events.log import EVENT_TYPES
from resolver.github.events.commands import find_instruction

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "bench/README.md")
    if path.name not in {"CHANGELOG.md", "cli.md"}  # history; made from the commands themselves
)
MARK = re.compile(r"<!-- (?:output|not run: [^>]{10,}|executed by (?P<test>[\w/.]+)) -->")
OUTPUT_MARK = "<!-- output -->"
SHELL_LANGUAGES = ("", "sh", "bash", "shell", "console")
PLACEHOLDER = re.compile(r"\.\.\.|\$")
KINDS = {str(event.model_fields["kind"].default) for event in EVENT_TYPES}

OTHERS = {
    "apt-get", "cat", "cd", "cp", "curl", "docker", "echo", "eval", "gh", "git", "harbor", "helm",
    "jq", "kubectl", "mkdir", "openssl", "pg_dump", "pg_restore", "phoenix", "pip", "pipx", "psql",
    "rm", "set", "sqlite3", "stat", "sudo", "systemctl", "tar", "uvx",
}  # fmt: skip
"""Programs of others, whose arguments are not checked: their names alone are known."""


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


def examples(page: Path) -> Iterator[Example]:
    """Yield the blocks of a page, with their marks."""
    mark = ""
    for token in MarkdownIt("commonmark").enable("table").parse(page.read_text()):
        if token.type in {"fence", "code_block"} and token.map:
            language = token.info.strip() if token.type == "fence" else ""
            yield Example(page, token.map[0] + 1, language, token.content, mark)
        comment = token.content.strip() if token.type == "html_block" else ""
        mark = comment if MARK.fullmatch(comment) else ""


def shell_examples(page: Path) -> Iterator[Example]:
    """Yield the blocks of a page that are shell lines, also those that are marked as not run."""
    return (example for example in examples(page) if is_shell(example))


def is_shell(example: Example) -> bool:
    """Return True if a block is meant for a shell."""
    if example.mark == OUTPUT_MARK or example.language not in SHELL_LANGUAGES:
        return False
    starts = ("{", "@agent ", "---\n")
    return not example.text.startswith(starts) and not is_settings(example.text)


def inline_commands(page: Path) -> Iterator[str]:
    """Yield the command lines of Resolver that a page names in its sentences."""
    for block in MarkdownIt("commonmark").enable("table").parse(page.read_text()):
        for token in block.children or ():
            if token.type == "code_inline" and re.match(r"(?:\S+/)?resolver [a-z]", token.content):
                yield token.content


FAULTS = (
    AssertionError,
    ResolverError,
    click.ClickException,
    ValueError,
    SyntaxError,
    yaml.YAMLError,
)
"""What a check raises."""


def check_example(example: Example) -> None:
    """Raise AssertionError, or an error of Resolver, if an example is wrong.

    A mark exempts a block, except for shell lines: also those that can't be executed are read.
    """
    text = example.text
    if example.mark and not is_shell(example):
        return
    match example.language:
        case "mermaid":
            return  # its picture is compared with it
        case "python":
            exec(compile(text, example.place, "exec"), {})
        case "yaml":
            check_yaml(text)
        case "json":
            json.loads(text)
        case language if language in SHELL_LANGUAGES:
            check_unnamed(text)
        case other:
            raise AssertionError(f"no check for a block in {other!r}: mark it with a comment")


def check_unnamed(text: str) -> None:
    """Check a block whose language follows from its content."""
    if text.startswith("{"):
        json.loads(" ".join(text.split("\n")))
    elif text.startswith("@agent "):
        for line in text.split("\n---\n")[0].splitlines():
            assert not line or find_instruction(line, "@agent"), line
    elif text.startswith("---\n"):
        check_frontmatter(text)
    elif is_settings(text):
        check_yaml(text)
    else:
        for line in shell_lines(text):
            check_shell_line(line)


def is_settings(text: str) -> bool:
    """Return True if a text is a YAML mapping of settings or of a workflow's step."""
    try:
        loaded = yaml.safe_load(text)
    except yaml.YAMLError:
        return False
    return isinstance(loaded, dict) and bool(loaded.keys() & {*Settings.model_fields, "with"})


def check_yaml(text: str) -> None:
    """Check settings, environment variables, or the form of a workflow or a compose file."""
    loaded = read_yaml(text)
    assert isinstance(loaded, dict)
    keys = set(map(str, loaded))
    if "jobs" in keys or "services" in keys:
        return  # checked by actionlint, or started by tests/action/test_image.py
    if "with" in keys:
        inputs = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]
        assert loaded["with"].keys() <= inputs.keys()
    elif all(key.isupper() for key in keys):
        check_variables({key: str(value) for key, value in loaded.items()})
    else:
        repository_settings(text.encode())
        own = {name for name in keys if not is_repository_setting(name)}
        assert not own, f"a repository can't set {own}"
        load_settings({}, {}, repository_settings(text.encode()))


def is_repository_setting(name: str) -> bool:
    field = Settings.model_fields.get(name)
    return field is not None and bool(setting_arguments(field)["repository"])


def check_frontmatter(text: str) -> None:
    """Check the definition of an agent; a skill has other fields, whose reader has own tests."""
    head = yaml.safe_load(text.split("---\n")[1])
    assert isinstance(head, dict) and head["description"]
    if "tools" in head:
        read_definition(text.encode(), ".agents/agents/example.md")


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
    assert not open_line, f"a quotation is not closed: {open_line}"
    return [line for line in lines if shlex.split(line, comments=True)]


def check_shell_line(line: str) -> None:
    """Check one line: the variables that it sets, and each of its commands."""
    commands: list[list[str]] = [[]]
    for inner in re.findall(r"\$\(([^()]+)\)", line):
        check_shell_line(inner)
    # In a synopsis, brackets stand around what may be left out.
    line = re.sub(r"\$\([^()]+\)", "...", line)
    line = re.sub(r"\[(-[^\]]+|[A-Z]\S*)\]", r"\1", line)
    for word in shell_words(re.sub(r"(?<=[A-Z])\|(?=[A-Z])", "-OR-", line)):
        if word in {"|", "&&", "||", ";"}:
            commands.append([])
        else:
            commands[-1].append(word)
    assert all(commands), line
    for command in commands:
        check_command(command)


def shell_words(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;")
    lexer.whitespace_split = True
    lexer.commenters = "#" if re.search(r"\s#\s", line) or line.startswith("#") else ""
    return list(lexer)


def check_command(words: list[str]) -> None:
    """Check a command: its program is known, and Resolver's own takes its arguments."""
    variables: dict[str, str] = {}
    if words[0] == "export":
        words = words[1:]
    while words and (found := re.fullmatch(r"([A-Za-z_]\w*)=(.*)", words[0], re.DOTALL)):
        variables[found[1]] = found[2]
        words = words[1:]
    check_variables(variables)
    if not words:
        return
    if words[0].split("/")[-1] == "resolver":
        check_resolver_command(words[1:])
    elif words[0] == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert {word for word in words[1:] if "=" not in word} <= set(targets), words
    elif words[0].split("/")[-1] in {"python", "pytest", "ruff", "mypy"} and len(words) > 1:
        named = [word for word in words[1:] if word.startswith(("tests/", "scripts/"))]
        assert all((ROOT / word).exists() for word in named), words
    else:
        assert words[0] in OTHERS, f"{words[0]} is no known program: mark the block if it can't run"
    for kind in re.findall(r'\.kind == "(\w+)"', " ".join(words)):
        assert kind in KINDS, f"no event has the kind {kind}"


def check_variables(variables: dict[str, str]) -> None:
    """Check that variables for Resolver set a setting, and that it takes their values."""
    known = all_variables()
    given = {name: value for name, value in variables.items() if name in known}
    unknown = {
        name for name in variables.keys() - known if name.startswith("RESOLVER_")
    } - OTHER_VARIABLES
    assert not unknown, f"no setting is read from {unknown}"
    real = {name: value for name, value in given.items() if not PLACEHOLDER.search(value)}
    load_settings({}, {name: value for name, value in real.items() if "KEY" not in name})


OTHER_VARIABLES = {"RESOLVER_TEST_CACHE"}
"""Variables of Resolver that are no settings."""


@cache
def all_variables() -> set[str]:
    """Return the names of all environment variables that set a setting."""
    fields = Settings.model_fields.items()
    return {variable for name, field in fields for variable in variable_names(name, field)}


def check_resolver_command(words: list[str], complete: bool = True) -> None:
    """Check a command line of Resolver: the command exists, and takes these options.

    complete: False if the value of the last option may be missing, as in a sentence about it.
    """
    words = [word for word in words if word not in {"...", "[...]"}]
    if ">" in words:
        words = words[: words.index(">")]
    command: click.Command = cli
    context = click.Context(cli)
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        assert found is not None, f"there is no command {words[0]}"
        command, words = found, words[1:]
    if not complete and words and words[-1].startswith("--"):
        takes_value = [parameter for parameter in command.params if words[-1] in parameter.opts]
        if any(
            isinstance(parameter, click.Option) and not parameter.is_flag
            for parameter in takes_value
        ):
            words = words[:-1]
    parsed = click.Context(command, **command.context_settings)
    options, _, order = command.make_parser(parsed).parse_args(args=list(words))
    for parameter in order:
        value = options.get(parameter.name or "")
        kind = parameter.type
        checked = isinstance(kind, (click.Choice, type(click.INT), type(click.FLOAT)))
        for item in value if isinstance(value, list) else [value]:
            if checked and isinstance(item, str) and not item.isupper():
                kind.convert(item, parameter, None)
