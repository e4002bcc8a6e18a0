"""Agents that a repository brings: one markdown file each, in `.agents/agents/`, at its default
branch. A file that can't be used is left out and said so.
"""

import difflib
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from resolver.agents.tool_calls import did_you_mean
from resolver.agents.tools import available_tools
from resolver.errors import FrontmatterError, WorkspaceError
from resolver.memory.frontmatter import Document, read_document, validated

FOLDER = ".agents/agents/"

MOST = 16
"""Definitions of one repository; each costs a line of every agent that may hand work on."""

MAX_FILE = 64_000
"""Bytes."""

MAX_PROMPT = 4_000
"""Characters: it is paid for with each call."""

MAX_DESCRIPTION = 200
"""Characters of one line."""

ALWAYS = ("think", "finish")
"""Tools that every agent has."""

CHANGING = frozenset({"execute_bash", "execute_ipython_cell", "str_replace_editor"})
"""Tools by which files can change. An agent without any of them only says something."""

MCP = "mcp"
"""In a file's `tools`: those of the run's MCP servers."""

KNOWN = (*available_tools(True, True, True, True), MCP)
"""What `tools` may name."""

_DEFAULT = ("execute_bash", "execute_ipython_cell", "str_replace_editor", "plan", "recall")
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,48}[a-z0-9])?")
_MODEL = re.compile(r"(?:[A-Za-z0-9][\w.:@+-]*(?:(?<!:)/[\w.:@+-]+)*)?", re.A)
"""No address: some providers' clients would take one in the place of a name, and send the key."""
_LEAST_ALIKE = 0.75


@dataclass(frozen=True)
class AgentDefinition:
    """An agent as its file has it.

    tools: names, in the order in which they are offered. model: "" is the run's. read_only: what
    it says is what it is for, and nothing that it changed is kept. prompt: the maintainers' words
    for it. path: its file. denied: the model that the file names and the operator does not pay
    for; the run's is used.
    """

    name: str
    description: str
    tools: tuple[str, ...]
    model: str
    read_only: bool
    prompt: str
    path: str
    denied: str = ""

    def without_model(self) -> "AgentDefinition":
        """The same, on the run's model."""
        return replace(self, model="", denied=self.model)


@dataclass(frozen=True)
class Definitions:
    """problems: what is wrong with the files that were left out, each a line for a person."""

    agents: tuple[AgentDefinition, ...] = ()
    problems: tuple[str, ...] = ()

    def find(self, name: str) -> AgentDefinition | None:
        """The agent of that name; None when there is none."""
        return next((each for each in self.agents if each.name == name), None)


def _names(value: Any) -> Any:
    """A list, or words with commas between them."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


def _one_line(value: Any) -> Any:
    return " ".join(value.split()) if isinstance(value, str) else value


class _Head(BaseModel):
    """What a file's head may say."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    name: str = ""
    description: Annotated[str, Field(min_length=1, max_length=MAX_DESCRIPTION)]
    tools: list[str] | None = None
    model: Annotated[str, Field(max_length=200)] = ""
    read_only: bool = False

    _line = field_validator("description", "model", "name", mode="before")(_one_line)
    _list = field_validator("tools", mode="before")(_names)

    @field_validator("name")
    @classmethod
    def _is_callable(cls, name: str) -> str:
        if name and not _NAME.fullmatch(name):
            raise ValueError("a name is small letters, digits and hyphens, at most 50 characters")
        return name

    @field_validator("model")
    @classmethod
    def _is_no_address(cls, name: str) -> str:
        if not _MODEL.fullmatch(name):
            raise ValueError("a model is named like `provider/name`")
        return name

    @field_validator("tools")
    @classmethod
    def _are_known(cls, tools: list[str] | None) -> list[str] | None:
        for name in tools or ():
            if name not in KNOWN:
                hint = did_you_mean(name.lower(), KNOWN) or f"; known: {', '.join(KNOWN)}"
                raise ValueError(f"there is no tool {name[:50]!r}{hint}")
        return tools


def is_definition(path: str) -> bool:
    """Whether a file of this path would be an agent: markdown right in the folder, no README."""
    name = path.removeprefix(FOLDER)
    inside = path.startswith(FOLDER) and "/" not in name
    return inside and name.lower().endswith(".md") and name.lower() != "readme.md"


def read_definitions(
    read: Callable[[str], bytes | None], paths: Iterable[str], reserved: Collection[str]
) -> Definitions:
    """The agents of a repository, in the order of their files' names.

    read: gives a file's bytes by its path at the default branch, None when it is no plain file.
    paths: of all files there. reserved: names that no agent may have, whatever their case.
    """
    taken = {name.lower(): "" for name in reserved}
    agents: list[AgentDefinition] = []
    problems: list[str] = []
    found = sorted(path for path in paths if is_definition(path))
    for path in found[:MOST]:
        try:
            data = read(path)
            if data is None:
                continue
            agent = read_definition(data, path)
            other = taken.get(agent.name)
            if other is not None:
                whose = f"that of {other}" if other else "one of Resolver's own names"
                raise FrontmatterError(path, 1, f"the name {agent.name!r} is {whose}")
        except (FrontmatterError, WorkspaceError) as error:
            end = "" if error.what.endswith("?") else "."
            problems.append(f"{error.what}{end} The agent was left out.")
        else:
            taken[agent.name] = path
            agents.append(agent)
    if found[MOST:]:
        problems.append(f"{FOLDER} has {len(found)} agents; only the first {MOST} are used.")
    return Definitions(tuple(agents), tuple(problems))


def read_definition(data: bytes, path: str) -> AgentDefinition:
    """One file. Raises FrontmatterError that names the line."""
    if len(data) > MAX_FILE:
        raise FrontmatterError(path, 1, f"the file has more than {MAX_FILE:,} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FrontmatterError(path, line, "this is not UTF-8") from None
    document = read_document(text, path)
    _check_spelling(document)
    head = validated(document, _Head)
    name = head.name or path.rpartition("/")[2][: -len(".md")]
    if not _NAME.fullmatch(name):
        what = "the file's name is none for an agent: set `name`, small letters, digits and hyphens"
        raise FrontmatterError(path, 1, what)
    tools = _offered(head)
    return AgentDefinition(
        name=name,
        description=head.description,
        tools=tools,
        model=head.model,
        read_only=head.read_only or not CHANGING & set(tools),
        prompt=_prompt(document),
        path=path,
    )


def _check_spelling(document: Document) -> None:
    """Other programs' fields do no harm; a `read-only: true` that is not seen would."""
    known = tuple(_Head.model_fields)
    for name in document.fields:
        near = difflib.get_close_matches(name.replace("-", "_").lower(), known, 1, _LEAST_ALIKE)
        if near and name not in known:
            what = f"there is no field `{name}`; did you mean `{near[0]}`?"
            raise FrontmatterError(document.path, document.lines.get(name, 1), what)


def _offered(head: _Head) -> tuple[str, ...]:
    wanted = _DEFAULT if head.tools is None else head.tools
    return tuple(name for name in KNOWN if name in wanted or name in ALWAYS)


def _prompt(document: Document) -> str:
    prompt = document.body.strip()
    if not prompt:
        raise FrontmatterError(document.path, 1, "there is no text below the head: the agent's own")
    if len(prompt) > MAX_PROMPT:
        what = (
            f"the text below the head has {len(prompt):,} characters, more than {MAX_PROMPT:,}: "
            "put what is not always needed in a file that it names"
        )
        raise FrontmatterError(document.path, 1, what)
    return prompt
