"""Agents that a repository defines, as markdown files in `.agents/agents/` on its default branch.

A file that can't be used is skipped and reported as a problem. `AvailableTools` lists what a run
offers to all agents in addition to their basic tools.
"""

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, get_args

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, field_validator

from resolver.agents.tools.base import Requirement
from resolver.agents.tools.calls import BROWSER, suggest_name
from resolver.agents.tools.registry import REQUIRED_TOOLS, TOOLS, DelegateAgent, available_tools
from resolver.errors import FrontmatterError, WorkspaceError
from resolver.memory.frontmatter import (
    Document,
    read_document,
    split_list,
    to_single_line,
    validate_document,
)
from resolver.models.run import McpTool
from resolver.security.invisible_text import without_invisible

FOLDER = ".agents/agents/"

MAX_DEFINITIONS = 8
"""Maximum number of definitions per repository.

Each adds a line to the prompt of every agent that may delegate.
"""

MAX_FILE_BYTES = 64_000
"""Maximum size of a definition file, in bytes."""

MAX_PROMPT_LENGTH = 4_000
"""Maximum length of a definition's prompt, in characters. Every model call contains it."""

MAX_DESCRIPTION_LENGTH = 200
"""Maximum length of the one-line description, in characters."""

EDITING_TOOLS = frozenset(tool.name for tool in TOOLS.values() if tool.is_editing)
"""Tools that can change files. An agent without any of them is read-only."""

MCP = "mcp"
"""Entry of `tools` in a definition that stands for all tools of the run's MCP servers."""

KNOWN_TOOLS = (*available_tools(get_args(Requirement)), BROWSER, MCP)
"""The values that `tools` in a definition accepts."""

_DEFAULT_TOOLS = ("execute_bash", "execute_ipython_cell", "str_replace_editor", "plan", "recall")
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,48}[a-z0-9])?")
_MODEL = re.compile(r"[A-Za-z0-9][\w.:@+-]*(?:(?<!:)/[\w.:@+-]+)*", re.A)
"""Pattern of model names.

URLs don't match: some providers' clients accept a URL in place of a name and would send the API key
to it.
"""


@dataclass(frozen=True)
class AgentDefinition:
    """An agent, as its file or Resolver itself defines it.

    description: one line about it, for agents that may delegate to it and people who may call it.
    tools: names of its tools, in the order in which they are offered to the model.
    read_only: its result is its final message, and its changes to files are discarded.
    model: name of its model; None for the run's model.
    prompt, path: the body of its file, added to the system prompt, and the path of the file; None
    for one of Resolver's own.
    denied_model: the model that the file names but that the operator's settings do not allow; the
    run's model is used instead.
    template: of its system prompt.
    note: additional advice for agents that may delegate to it.
    is_callable: whether a person can call it by name.
    needs: the part of `AvailableTools` that it can't work without.
    sees_images: it looks at images, if its model accepts them.
    """

    name: str
    description: str
    tools: tuple[str, ...]
    read_only: bool
    model: str | None = None
    prompt: str | None = None
    path: str | None = None
    denied_model: str | None = None
    template: str = "agent/defined.md.j2"
    note: str | None = None
    is_callable: bool = True
    needs: Literal["browser_tools", "index"] | None = None
    sees_images: bool = True

    def without_model(self) -> "AgentDefinition":
        """Return the definition with the run's model, and its own model in `denied_model`."""
        return replace(self, model=None, denied_model=self.model)


@dataclass(frozen=True)
class Definitions:
    """The definitions of a repository.

    problems: one line for each file that was skipped, with the reason.
    """

    agents: tuple[AgentDefinition, ...] = ()
    problems: tuple[str, ...] = ()


def _split_tools(value: Any) -> Any:
    return None if value is None else split_list(value)


class _Frontmatter(BaseModel):
    """The frontmatter of a definition file."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str | None = None
    description: Annotated[str, Field(min_length=1, max_length=MAX_DESCRIPTION_LENGTH)]
    tools: list[str] | None = None
    model: Annotated[str | None, Field(max_length=200)] = None
    # An overlooked `read-only: true` would give an agent more than its author wanted.
    read_only: bool = Field(
        default=False, validation_alias=AliasChoices("read_only", "read-only", "readonly")
    )

    _single_line = field_validator("description", "model", "name", mode="before")(to_single_line)
    _tool_list = field_validator("tools", mode="before")(_split_tools)

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str | None) -> str | None:
        if name and not _NAME.fullmatch(name):
            raise ValueError(
                "a name consists of lower-case letters, digits and hyphens, at most 50 characters"
            )
        return name

    @field_validator("model")
    @classmethod
    def _check_model(cls, model: str | None) -> str | None:
        if model and not _MODEL.fullmatch(model):
            raise ValueError("a model is named like `provider/name`")
        return model or None

    @field_validator("tools")
    @classmethod
    def _check_tools(cls, tools: list[str] | None) -> list[str] | None:
        for name in tools or ():
            if name not in KNOWN_TOOLS:
                hint = (
                    suggest_name(name.lower(), KNOWN_TOOLS) or f"; known: {', '.join(KNOWN_TOOLS)}"
                )
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
    path_by_name: dict[str, str | None] = {name.lower(): None for name in reserved}
    agents: list[AgentDefinition] = []
    problems: list[str] = []
    definition_paths = sorted(path for path in paths if is_definition(path))
    for path in definition_paths[:MAX_DEFINITIONS]:
        try:
            data = read(path)
            if data is None:
                continue
            agent = read_definition(data, path)
            if agent.name in path_by_name:
                other_path = path_by_name[agent.name]
                owner = f"that of {other_path}" if other_path else "one of Resolver's own names"
                raise FrontmatterError(path, 1, f"the name {agent.name!r} is {owner}")
        except (FrontmatterError, WorkspaceError) as error:
            problems.append(f"{error.what}; it is left out")
        else:
            path_by_name[agent.name] = path
            agents.append(agent)
    if definition_paths[MAX_DEFINITIONS:]:
        problems.append(
            f"{FOLDER} has {len(definition_paths)} agents; "
            f"only the first {MAX_DEFINITIONS} are used."
        )
    return Definitions(tuple(agents), tuple(problems))


def read_definition(data: bytes, path: str) -> AgentDefinition:
    """Return the definition in one file. Raises FrontmatterError that names the line."""
    if len(data) > MAX_FILE_BYTES:
        raise FrontmatterError(path, 1, f"the file has more than {MAX_FILE_BYTES:,} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FrontmatterError(path, line, "this is not UTF-8") from None
    # Whoever reviewed the file did not see these characters, and a model reads them.
    visible = without_invisible(text.replace("\r\n", "\n").replace("\r", "\n"))
    document = read_document(visible, path)
    frontmatter = validate_document(document, _Frontmatter)
    name = frontmatter.name or path.rpartition("/")[2][: -len(".md")]
    if not _NAME.fullmatch(name):
        message = (
            "the file's name can't be the agent's: set `name` (lower-case letters, digits, hyphens)"
        )
        raise FrontmatterError(path, 1, message)
    tools = _tool_names(frontmatter)
    return AgentDefinition(
        name=name,
        description=frontmatter.description,
        tools=tools,
        model=frontmatter.model,
        read_only=frontmatter.read_only or not EDITING_TOOLS & set(tools),
        prompt=_check_prompt(document),
        path=path,
    )


def _tool_names(frontmatter: _Frontmatter) -> tuple[str, ...]:
    requested = _DEFAULT_TOOLS if frontmatter.tools is None else frontmatter.tools
    return tuple(name for name in KNOWN_TOOLS if name in requested or name in REQUIRED_TOOLS)


def _check_prompt(document: Document) -> str:
    prompt = document.body.strip()
    if not prompt:
        raise FrontmatterError(
            document.path, 1, "there is no text below the front matter: the agent's own"
        )
    if len(prompt) > MAX_PROMPT_LENGTH:
        message = (
            f"the text below the front matter has {len(prompt):,} characters, more than "
            f"{MAX_PROMPT_LENGTH:,}: "
            "put what is not always needed in a file that it names"
        )
        raise FrontmatterError(document.path, 1, message)
    return prompt


def _no_lines(_: str) -> None:
    return None


@dataclass(frozen=True)
class AvailableTools:
    """The parts that an agent may use in addition to its basic tools. Few agents use all.

    delegates: the agent may delegate work to other agents.
    index: the host has an index of the code.
    mcp: tools of MCP servers, among them those of the browser.
    definitions: agents that the repository defines.
    colleagues: agents that can be delegated to; set by the registry.
    recall: there are skills that the agent can ask for.
    count_lines: returns the number of lines of a file at the base commit, None if there is no such
    file; used with the index only.
    thread_labels: labels of the review threads that the run is asked about.
    """

    delegates: bool = False
    index: bool = False
    mcp: tuple[McpTool, ...] = ()
    definitions: tuple[AgentDefinition, ...] = ()
    colleagues: tuple[DelegateAgent, ...] = ()
    recall: bool = False
    count_lines: Callable[[str], int | None] = _no_lines
    thread_labels: tuple[str, ...] = ()

    @property
    def browser_tools(self) -> tuple[McpTool, ...]:
        """Return the tools of the run's browser; none if there is no browser."""
        return tuple(tool for tool in self.mcp if tool.server == BROWSER)

    @property
    def requirements(self) -> frozenset[Requirement]:
        """Return the requirements of tools (`Tool.requires`) that are met."""
        return frozenset(name for name in get_args(Requirement) if getattr(self, name))


NO_OPTIONAL_TOOLS = AvailableTools()
