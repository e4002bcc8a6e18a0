"""Decides which skills and instructions a run loads, when, and why, before each call of the model.

The decision depends on the event log only, so a resumed run loads the same. Loaded text is appended
to the end of the conversation, each skill at most once, within fixed limits.
"""

import posixpath
from collections.abc import Sequence
from typing import Literal

from resolver.config.templates import render
from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import Source as EventSource
from resolver.events.log import Event
from resolver.events.state import LogFollower, State
from resolver.memory.skills.library import RECALL_TOOL, Library, render_skill_list
from resolver.memory.skills.skill import Origin, Skill, find_trigger
from resolver.models.path_globs import matches_glob
from resolver.models.run import Task, TriggerKind
from resolver.models.truncate import truncate_middle

MAX_FILE_LENGTH = 16_000
"""Maximum characters loaded of one file; the agent can read the rest itself."""

MAX_LOADED_LENGTH = 80_000
"""Maximum characters of everything that is loaded."""

MIN_SHARE = 500
"""If less room than this is left, a note that there is no room is shown in place of the text."""

SKILL_LIST = "the list of skills"

_CODE_TOOLS = frozenset({"execute_bash", "execute_ipython_cell", "str_replace_editor"})
"""An agent with none of these tools only browses, and gets no knowledge about files."""

RecalledText = tuple[a.Recall, o.RecallResult]


class SkillRecaller:
    """Loads the instructions, the skill that a person asked for, and skills whose triggers match.

    library: everything that can be loaded.
    roots: paths of the repository in the sandboxes that the log mentions.
    """

    def __init__(self, library: Library, roots: Sequence[str] = ()) -> None:
        self._library = library
        self._roots = tuple(root.rstrip("/") for root in roots if root.rstrip("/"))
        self._log = LogFollower()
        self._clear()

    def recall(self, state: State) -> Sequence[RecalledText]:
        """Return the events to add to the stream before the model is called: each action followed
        by its result.

        The same log always gives the same answer. What the log already contains is not returned
        again.
        """
        new_events, is_start = self._log.read(state)
        if is_start:
            self._clear()
        for event in new_events:
            self._process(event)
        if not _CODE_TOOLS.intersection(self._tools):
            return ()
        remaining = MAX_LOADED_LENGTH - sum(self._loaded.values())
        recalled: list[RecalledText] = []
        for name, (text, hint) in self._due.items():
            if name not in self._loaded:
                recalled.append(_recall(text, hint, min(MAX_FILE_LENGTH, remaining)))
                remaining -= len(recalled[-1][1].content)
        return recalled

    def _clear(self) -> None:
        self._tools: tuple[str, ...] = ()
        self._has_task = False
        self._has_replied = False
        self._loaded: dict[str, int] = {}  # characters by name
        # the text to load by name, and how to read it in full when it is truncated
        self._due: dict[str, tuple[o.RecallResult, str | None]] = {}
        for skill in self._library.always:
            self._add(skill, "always loaded", "instructions")

    def _add(
        self, skill: Skill, why: str, about: Literal["instructions", "skill", "task"] = "skill"
    ) -> None:
        text = o.RecallResult(
            content=skill.body, about=about, name=skill.name, sources=(skill.source,), why=why
        )
        is_own = skill.origin is Origin.REPOSITORY
        hint = f"The whole file is {skill.source}." if is_own else None
        self._due.setdefault(skill.name, (text, hint))

    def _process(self, event: Event) -> None:
        """Add what the event calls for."""
        match event:
            case life.RunStarted(task=task):
                self._has_task = True
                self._read_task(task)
            case life.SystemPrompt(tools=tools):
                self._tools = self._tools or tools
                skills = self._library.skills
                if RECALL_TOOL in tools and any(s.origin is not Origin.SHIPPED for s in skills):
                    listed = render_skill_list(skills)
                    why = "to choose from"
                    text = o.RecallResult(content=listed, about="list", name=SKILL_LIST, why=why)
                    self._due.setdefault(SKILL_LIST, (text, None))
            case life.ModelReplied():
                self._has_replied = True
            case a.Message(source=EventSource.USER, cause=None, content=content):
                # the first message of a run only repeats the task, in the words of a template
                if not self._has_task or self._has_replied:
                    self._read_text(content)
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
                self._loaded[name] = self._loaded.get(name, 0) + len(content)
            case _:
                pass

    def _read_task(self, task: Task) -> None:
        named = task.trigger.named
        if named and (skill := self._library.skill(named)):
            self._add(skill, f"asked for as /{named}", "task")
        for text in _texts_of(task):
            self._read_text(text)
        for file in task.pull.files if task.pull else ():
            self._change(file.path)

    def _read_text(self, text: str) -> None:
        for skill in self._library.skills:
            matches = (find_trigger(trigger, text) for trigger in skill.triggers)
            if matched := next(filter(None, matches), None):
                self._add(skill, f"“{matched}” was said")

    def _change(self, path: str) -> None:
        from_root = self._from_root(path)
        if from_root is None:
            return
        self._touch(from_root)
        for skill in self._library.skills:
            if any(matches_glob(from_root, glob) for glob in skill.globs):
                self._add(skill, f"{from_root} was changed")

    def _touch(self, path: str | None) -> None:
        """Add the instructions of the folders that contain the path, the innermost last, because
        it takes precedence over the others."""
        parts = path.split("/") if path else []
        for count in range(1, len(parts) + 1):
            folder = "/".join(parts[:count]) + "/"
            file = self._library.nested.get(folder)
            if file is not None and file not in self._due:
                skill = self._library.instructions_at(folder)
                if skill is not None:
                    self._add(skill, f"{path} was touched", "instructions")

    def _from_root(self, path: str) -> str | None:
        """Return the path from the repository's root; None for the root and for paths outside."""
        for root in self._roots:
            if path == root or path.startswith(f"{root}/"):
                path = path[len(root) :]
                break
        clean = posixpath.normpath(path.lstrip("/") or ".")
        return None if clean == "." or clean.startswith("..") else clean


def _texts_of(task: Task) -> list[str]:
    # Nobody wrote the instruction of a run that a failed check triggered: it comes from a template,
    # and only the name of the check says what the run is about.
    has_instruction = task.trigger.kind is not TriggerKind.CHECK_FAILED
    request = task.trigger.instruction if has_instruction else task.trigger.check
    comments = [comment.body for comment in task.comments if not comment.is_ours]
    closed = (issue for issue in task.references if issue.relation == "closed by it")
    linked = [text for issue in closed for text in (issue.title, issue.body)]
    return [request, task.title, *task.labels, task.body, *comments, *linked]


def _recall(text: o.RecallResult, hint: str | None, limit: int) -> RecalledText:
    """Return the events that load the text, with at most about `limit` characters of it."""
    content = (
        truncate_middle(text.content, limit, hint or "")
        if limit >= MIN_SHARE
        else render("agent/skill_no_room.md.j2", called=text.name, hint=hint).strip()
    )
    action = a.Recall(query=text.name or "", why=text.why, source=EventSource.ENVIRONMENT)
    return action, text.model_copy(update={"content": content})
