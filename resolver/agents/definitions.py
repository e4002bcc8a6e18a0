"""Agents that a repository defines, as markdown files in `.agents/agents/` on its default branch.

A file that can't be used is skipped and reported as a problem. `AvailableTools` lists what a run
offers to all agents in addition to their basic tools.
"""

import difflib
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from resolver.agents.tools import DelegateAgent, available_tools, did_you_mean
from resolver.errors import FrontmatterError, WorkspaceError
from resolver.memory.frontmatter import Document, read_document, validated
from resolver.models.run import McpTool

FOLDER = ".agents/agents/"

MOST = 16
"""Maximum number of definitions per repository.

Each adds a line to the prompt of every agent that may delegate.
"""

MAX_FILE = 64_000
"""Maximum size of a definition file, in bytes."""

MAX_PROMPT = 4_000
"""Maximum length of a definition's prompt, in characters. Every model call contains it."""

MAX_DESCRIPTION = 200
"""Maximum length of the one-line description, in characters."""

ALWAYS = ("think", "finish")
"""Tools that every agent has, whether its file lists them or not."""

CHANGING = frozenset({"execute_bash", "execute_ipython_cell", "str_replace_editor"})
"""Tools that can change files. An agent without any of them is read-only."""

MCP = "mcp"
"""Entry of `tools` in a definition that stands for all tools of the run's MCP servers."""

KNOWN = (*available_tools(True, True, True, True), MCP)
"""The values that `tools` in a definition accepts."""

_DEFAULT = ("execute_bash", "execute_ipython_cell", "str_replace_editor", "plan", "recall")
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,48}[a-z0-9])?")
_MODEL = re.compile(r"(?:[A-Za-z0-9][\w.:@+-]*(?:(?<!:)/[\w.:@+-]+)*)?", re.A)
"""Pattern of model names.

URLs don't match: some providers' clients accept a URL in place of a name and would send the API key
to it.
"""
_LEAST_ALIKE = 0.75
"""Minimum similarity of an unknown field to a known one to be reported as a misspelling."""


@dataclass(frozen=True)
class AgentDefinition:
    """An agent as its definition file describes it.

    tools: names of its tools, in the order in which they are offered to the model.
    model: name of its model; "" for the run's model.
    read_only: its result is its final message, and its changes to files are discarded.
    prompt: the body of the file, added to the system prompt.
    path: path of the file.
    denied: the model that the file names but that the operator's settings do not allow; the run's
    model is used instead.
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
        """Return the definition with the run's model, and its own model in `denied`."""
        return replace(self, model="", denied=self.model)


@dataclass(frozen=True)
class Definitions:
    """The definitions of a repository.

    problems: one line for each file that was skipped, with the reason.
    """

    agents: tuple[AgentDefinition, ...] = ()
    problems: tuple[str, ...] = ()

    def find(self, name: str) -> AgentDefinition | None:
        """Return the definition with that name, or None if there is none."""
        return next((each for each in self.agents if each.name == name), None)


def _names(value: Any) -> Any:
    """Return a comma-separated string as a list; any other value unchanged."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


def _one_line(value: Any) -> Any:
    return " ".join(value.split()) if isinstance(value, str) else value


class _Head(BaseModel):
    """The frontmatter of a definition file."""

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
    """Return True if the path is that of a definition.

    Definitions are markdown files directly in the folder, except its README.
    """
    name = path.removeprefix(FOLDER)
    inside = path.startswith(FOLDER) and "/" not in name
    return inside and name.lower().endswith(".md") and name.lower() != "readme.md"


def read_definitions(
    read: Callable[[str], bytes | None], paths: Iterable[str], reserved: Collection[str]
) -> Definitions:
    """Return the agents that a repository defines, in the order of their file names.

    read: returns the content of a file on the default branch, None if it is not a regular file.
    paths: all file paths of that branch.
    reserved: names that no definition may have, in any case.
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
    """Return the definition in one file. Raises FrontmatterError that names the line."""
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
    """Raise FrontmatterError for a field that looks like a misspelled known one.

    Unknown fields of other programs are ignored. A misspelled one must not be: an overlooked
    `read-only: true` would give an agent more than its author wanted.
    """
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


def _no_file(_: str) -> None:
    return None


@dataclass(frozen=True)
class AvailableTools:
    """What an agent may use in addition to its basic tools. Not every agent uses all of it.

    delegates: the agent may delegate work to other agents.
    browser: the sandbox has a browser.
    index: the host has an index of the code.
    mcp: tools of MCP servers.
    definitions: agents that the repository defines.
    colleagues: agents that can be delegated to; set by the registry.
    recall: there are skills that the agent can ask for.
    remember: notes for later runs are kept.
    lines_of: returns the number of lines of a file at the base commit, None if there is no such
    file; used with the index only.
    threads: labels of the review threads that the run is asked about.
    """

    delegates: bool = False
    browser: bool = False
    index: bool = False
    mcp: tuple[McpTool, ...] = ()
    definitions: tuple[AgentDefinition, ...] = ()
    colleagues: tuple[DelegateAgent, ...] = ()
    recall: bool = False
    remember: bool = False
    lines_of: Callable[[str], int | None] = _no_file
    threads: tuple[str, ...] = ()


NOTHING = AvailableTools()
