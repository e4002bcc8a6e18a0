"""Extracts from a log what decides which skills are loaded: what people wrote, files that were
touched or changed, and what was already loaded. Updated from new events only.
"""

import posixpath
from collections.abc import Sequence

from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import Source
from resolver.events.log import Event
from resolver.events.state import LogFollower, State
from resolver.models.run import Task, Trigger, TriggerKind

_BROWSING_TOOLS = frozenset({"think", "finish", "mcp"})


class ObservedText:
    """Holds what was read from one state.

    roots: paths of the repository in the sandboxes that the log mentions.

    New since the last call of `update`:
    texts: what people wrote: the request, the issue with its comments, linked issues, messages.
    touched: paths from the repository's root that were opened, changed or entered.
    changed: the paths that were changed.

    From the whole log:
    trigger: the event that started the run; None in a delegate's log.
    loaded: characters loaded so far, by name.
    tools: names of the tools that the agent has.
    """

    def __init__(self, roots: Sequence[str]) -> None:
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
        for values in (self.texts, self.touched, self.changed):
            values.clear()
        for event in new_events:
            self._process(event)
        return is_start

    @property
    def works_on_code(self) -> bool:
        """True if the agent has tools for files. Agents that only browse get no skills."""
        return any("__" not in name and name not in _BROWSING_TOOLS for name in self.tools)

    def _clear(self) -> None:
        self.texts: list[str] = []
        self.touched: list[str] = []
        self.changed: list[str] = []
        self.trigger: Trigger | None = None
        self.loaded: dict[str, int] = {}
        self.tools: tuple[str, ...] = ()
        self._has_replied = False
        self._touched: set[str] = set()
        self._changed: set[str] = set()

    def _process(self, event: Event) -> None:
        match event:
            case life.RunStarted(task=task):
                self.trigger = task.trigger
                self.texts += _texts_of(task)
                for file in task.pull.files if task.pull else ():
                    self._change(file.path)
            case life.SystemPrompt(tools=tools):
                self.tools = self.tools or tools
            case life.ModelReplied():
                self._has_replied = True
            case a.Message(source=Source.USER, cause=None, content=content):
                # the first message of a run only repeats the task, in the words of a template
                if self.trigger is None or self._has_replied:
                    self.texts.append(content)
            case a.FileRead(path=path):
                self._touch(self._from_root(path))
            case a.FileWrite(path=path) | a.FileEdit(path=path):
                self._change(path)
            case o.SandboxObservation():
                for path in event.changed.paths if event.changed else ():
                    self._change(path)
                if isinstance(event, o.CmdOutput) and event.cwd:
                    self._touch(self._from_root(event.cwd))
            case o.RecallResult(name=name, content=content) if name:
                self.loaded[name] = self.loaded.get(name, 0) + len(content)
            case _:
                pass

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

    def _from_root(self, path: str) -> str:
        """Return the path from the repository's root; "" for the root and for paths outside."""
        for root in self._roots:
            if path == root or path.startswith(f"{root}/"):
                path = path[len(root) :]
                break
        clean = posixpath.normpath(path.lstrip("/") or ".")
        return "" if clean == "." or clean.startswith("..") else clean


def _texts_of(task: Task) -> list[str]:
    # Nobody wrote the instruction of a run that a failed check triggered: it comes from a template,
    # and only the name of the check says what the run is about.
    has_instruction = task.trigger.kind is not TriggerKind.CHECK_FAILED
    request = task.trigger.instruction if has_instruction else task.trigger.check
    comments = [comment.body for comment in task.comments if not comment.is_ours]
    linked = (
        [text for issue in task.pull.closes for text in (issue.title, issue.body)]
        if (task.pull)
        else []
    )
    return [request, task.title, *task.labels, task.body, *comments, *linked]
