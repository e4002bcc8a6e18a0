"""Extracts from a log what decides which skills are loaded: messages of people, files that were
touched or changed, and what was already loaded. Updated from new events only.
"""

import posixpath
import re
from collections.abc import Collection, Sequence

from resolver.config.templates import render
from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import Source
from resolver.events.log import Event
from resolver.events.state import LogFollower, State
from resolver.models.run import Task, Trigger, TriggerKind

MAX_COMMAND_LENGTH = 20_000
"""Maximum characters of a command that are searched for file names."""

_PATH_NAME = re.compile(r"[\w./@+~-]+")
_REQUEST = re.compile(r"--- begin request (\w+) ---\n(.*?)\n--- end request \1 ---", re.DOTALL)
_TASK_PLACEHOLDER = "\N{OBJECT REPLACEMENT CHARACTER}"
_BROWSING_TOOLS = frozenset({"think", "browser", "execute_browse", "finish"})


class ObservedText:
    """Holds what was read from one state.

    files: the repository's files.
    roots: paths of the repository in the sandboxes that the log mentions.

    New since the last call of `update`:
    requests: texts that state what is wanted: instruction, title, labels, later messages.
    mentions: texts around them: the issue's body, its comments, linked issues.
    touched: paths from the repository's root that were opened, changed or named in a command.
    changed: the paths that were changed.

    From the whole log:
    trigger: the event that started the run; None in a delegate's log.
    loaded: characters loaded so far, by name.
    tools: names of the tools that the agent has.
    has_replied: the model has replied at least once.
    """

    def __init__(self, files: Collection[str], roots: Sequence[str]) -> None:
        self._files = files
        self._folders = {folder for path in files for folder in _folders_of(path)}
        self._roots = tuple(root.rstrip("/") for root in roots if root.rstrip("/"))
        self._log = LogFollower()
        self._clear()

    def update(self, state: State) -> bool:
        """Process new events.

        Return True if this is the first state or not a continuation of the last one.
        """
        new_events, is_start = self._log.read(state)
        if is_start:
            self._clear()
        for values in (self.requests, self.mentions, self.touched, self.changed):
            values.clear()
        for event in new_events:
            self._process(event)
        return is_start

    @property
    def works_on_code(self) -> bool:
        """True if the agent has tools for files. Agents that only browse get no skills."""
        return bool(set(self.tools) - _BROWSING_TOOLS)

    def _clear(self) -> None:
        self.requests: list[str] = []
        self.mentions: list[str] = []
        self.touched: list[str] = []
        self.changed: list[str] = []
        self.trigger: Trigger | None = None
        self.loaded: dict[str, int] = {}
        self.tools: tuple[str, ...] = ()
        self.has_replied = False
        self._touched: set[str] = set()
        self._changed: set[str] = set()
        self._folder = ""

    def _process(self, event: Event) -> None:
        match event:
            case life.RunStarted(task=task):
                self.trigger = task.trigger
                self.requests.append(_request_of(task))
                self.mentions.append(_mentions_of(task))
                for file in task.pull.files if task.pull else ():
                    self._change(file.path)
            case life.SystemPrompt(tools=tools):
                self.tools = self.tools or tools
            case life.ModelReplied():
                self.has_replied = True
            case a.Message(source=Source.USER, cause=None, content=content):
                self._process_message(content)
            case a.FileRead(path=path):
                self._touch(self._from_root(path))
            case a.FileWrite(path=path) | a.FileEdit(path=path):
                self._change(path)
            case a.CmdRun(source=Source.AGENT, is_input=False, command=text):
                self._process_names(text)
            case a.IPythonRunCell(source=Source.AGENT, code=text):
                self._process_names(text)
            case o.SandboxObservation():
                self._process_result(event)
            case o.RecallResult(name=name, content=content) if name:
                self.loaded[name] = self.loaded.get(name, 0) + len(content)
            case _:
                pass

    def _process_message(self, content: str) -> None:
        """Add a person's message to the requests.

        The run's first message only repeats the task, which is already known. Later messages are
        stripped of the template text around them, which asks for nothing.
        """
        if self.trigger is not None and not self.has_replied:
            return
        request = _REQUEST.search(content)
        if request:
            content = request[2]
        prefix, _, suffix = (
            render("agent/delegated_task.md.j2", task=_TASK_PLACEHOLDER)
            .strip()
            .partition(_TASK_PLACEHOLDER)
        )
        self.requests.append(content.removeprefix(prefix).removesuffix(suffix))

    def _process_names(self, text: str) -> None:
        """Record the repository's files and folders that a command or a cell names."""
        for name in _PATH_NAME.findall(text[:MAX_COMMAND_LENGTH]):
            if "/" in name or "." in name or name in self._files or name in self._folders:
                path = self._from_folder(name)
                if path in self._files or path in self._folders:
                    self._touch(path)

    def _process_result(self, result: o.SandboxObservation) -> None:
        for path in result.changed.paths if result.changed else ():
            self._change(path)
        if isinstance(result, o.CmdOutput) and result.cwd:
            self._folder = self._from_root(result.cwd)

    def _change(self, path: str) -> None:
        path = self._from_root(path)
        self._touch(path)
        if path and path not in self._changed:
            self._changed.add(path)
            self.changed.append(path)

    def _touch(self, path: str) -> None:
        if path and path not in self._touched:
            self._touched.add(path)
            self.touched.append(path)

    def _from_folder(self, path: str) -> str:
        """Return the path from the repository's root of a path given from the shell's directory."""
        return self._from_root(posixpath.join(f"/{self._folder}", path) if self._folder else path)

    def _from_root(self, path: str) -> str:
        """Return the path from the repository's root; "" for the root and for paths outside."""
        for root in self._roots:
            if path == root or path.startswith(f"{root}/"):
                path = path[len(root) :]
                break
        clean = posixpath.normpath(path.lstrip("/") or ".")
        return "" if clean == "." or clean.startswith("..") else clean


def _request_of(task: Task) -> str:
    # Nobody wrote the instruction of a run that a failed check triggered: it comes from a template,
    # and only the name of the check says what the run is about.
    has_instruction = task.trigger.kind is not TriggerKind.CHECK_FAILED
    request = task.trigger.instruction if has_instruction else task.trigger.check
    return "\n\n".join((request, task.title, *task.labels))


def _mentions_of(task: Task) -> str:
    comments = (comment.body for comment in task.comments if not comment.is_ours)
    linked = (
        [text for issue in task.pull.closes for text in (issue.title, issue.body)]
        if task.pull
        else []
    )
    return "\n\n".join((task.body, *comments, *linked))


def _folders_of(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
