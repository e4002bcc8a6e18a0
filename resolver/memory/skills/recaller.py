"""Decides which skills and instructions a run loads, when, and why, before each call of the model.

The decision depends on the event log only, so a resumed run loads the same. Loaded text is appended
to the end of the conversation, each skill at most once, within fixed limits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from resolver.config.templates import render
from resolver.events.actions import Recall
from resolver.events.base import Source as EventSource
from resolver.events.observations import RecallResult
from resolver.events.state import State
from resolver.memory.skills.library import RECALL_TOOL, Library, render_skill_list
from resolver.memory.skills.observed_text import ObservedText
from resolver.memory.skills.skill import Origin, Skill
from resolver.memory.skills.triggers import find_trigger
from resolver.models.path_globs import matches_glob
from resolver.models.truncate import truncate_middle

MAX_FILE_LENGTH = 16_000
"""Maximum characters loaded of one file; the agent can read the rest itself."""

MAX_ALWAYS_LENGTH = 32_000
"""Maximum characters of everything that is loaded when a run begins."""

MAX_TRIGGERED_LENGTH = 48_000
"""Maximum characters of everything that is loaded later because a trigger matched."""

MIN_SHARE = 500
"""If less room than this is left, a note that there is no room is shown in place of the text."""

SKILL_LIST = "the list of skills"

RecalledText = tuple[Recall, RecallResult]
RecallTopic = Literal["instructions", "skill", "task", "list"]


class Recaller(Protocol):
    """Decides what the agent is to be shown next."""

    def recall(self, state: State) -> Sequence[RecalledText]:
        """Return the events to add to the stream before the model is called: each action followed
        by its result.

        The same log always gives the same answer. What the log already contains is not returned
        again.
        """
        ...


class NullRecaller:
    """A recaller that never loads anything."""

    def recall(self, state: State) -> Sequence[RecalledText]:  # noqa: ARG002 - the protocol
        return ()


@dataclass(frozen=True)
class _TextToLoad:
    """A text to load. `hint` says how to read it in full when it is truncated.

    always: the text counts towards `MAX_ALWAYS_LENGTH`, otherwise towards `MAX_TRIGGERED_LENGTH`.
    """

    name: str
    why: str
    text: str
    sources: tuple[str, ...]
    about: RecallTopic
    always: bool = False
    hint: str = ""


class SkillRecaller:
    """Loads the instructions, the skill that a person asked for, and skills whose triggers match.

    library: everything that can be loaded.
    roots: paths of the repository in the sandboxes that the log mentions.
    """

    def __init__(self, library: Library, roots: Sequence[str] = ()) -> None:
        self._library = library
        self._observed = ObservedText(roots)
        self._texts_to_load: dict[str, _TextToLoad] = {}
        self._always_names = {*(skill.name for skill in library.always), SKILL_LIST}

    def recall(self, state: State) -> Sequence[RecalledText]:
        """See `Recaller`."""
        observed = self._observed
        is_new = observed.update(state)
        if is_new:
            self._texts_to_load = {}
        if not observed.works_on_code:
            return ()
        if is_new or observed.texts or observed.touched:
            for text in self._new_texts(is_new):
                self._texts_to_load.setdefault(text.name, text)
        missing = [
            text for name, text in self._texts_to_load.items() if name not in observed.loaded
        ]
        return self._load(missing) if missing else ()

    def _load(self, missing: Sequence[_TextToLoad]) -> list[RecalledText]:
        always = sum(n for name, n in self._observed.loaded.items() if name in self._always_names)
        triggered = sum(self._observed.loaded.values()) - always
        remaining = {True: MAX_ALWAYS_LENGTH - always, False: MAX_TRIGGERED_LENGTH - triggered}
        loaded: list[RecalledText] = []
        for text in missing:
            share = min(MAX_FILE_LENGTH, remaining[text.always])
            content = (
                truncate_middle(text.text, share, text.hint)
                if share >= MIN_SHARE
                else _no_room_note(text)
            )
            remaining[text.always] -= len(content)
            loaded.append(
                (
                    Recall(query=text.name, why=text.why, source=EventSource.ENVIRONMENT),
                    RecallResult(
                        content=content,
                        about=text.about,
                        name=text.name,
                        sources=text.sources,
                        why=text.why,
                    ),
                )
            )
        return loaded

    def _new_texts(self, is_new: bool) -> Iterator[_TextToLoad]:
        """Yield everything that the new events call for, in the order in which it is shown."""
        if is_new:
            yield from self._initial_texts()
        unloaded = [
            skill for skill in self._library.skills if skill.name not in self._observed.loaded
        ]
        for skill in unloaded:
            matches = (
                find_trigger(trigger, text)
                for text in self._observed.texts
                for trigger in skill.triggers
            )
            if matched := next(filter(None, matches), None):
                yield _skill_text(skill, f"“{matched}” was said")
        for path in self._observed.touched:
            yield from self._folder_instructions(path)
        for path in self._observed.changed:
            for skill in unloaded:
                if any(matches_glob(path, glob) for glob in skill.globs):
                    yield _skill_text(skill, f"{path} was changed")

    def _initial_texts(self) -> Iterator[_TextToLoad]:
        """Yield what is loaded when a run begins, and a skill that was asked for by command."""
        for skill in self._library.always:
            hint = f"The whole file is {skill.source}."
            sources = (skill.source,)
            yield _TextToLoad(
                skill.name, "always loaded", skill.body, sources, "instructions", True, hint
            )
        trigger = self._observed.trigger
        asked_for = self._library.skill(trigger.named) if trigger is not None else None
        if trigger is not None and asked_for is not None:
            why = f"asked for as /{trigger.named}"
            yield replace(_skill_text(asked_for, why), about="task")
        if RECALL_TOOL in self._observed.tools and any(
            skill.origin is not Origin.SHIPPED for skill in self._library.skills
        ):
            text = render_skill_list(self._library.skills)
            yield _TextToLoad(SKILL_LIST, "to choose from", text, (), "list", True)

    def _folder_instructions(self, path: str) -> Iterator[_TextToLoad]:
        """Yield the instructions of the folders that contain the path, the innermost last, because
        it takes precedence over the others."""
        parts = path.split("/")
        for count in range(1, len(parts) + 1):
            folder = "/".join(parts[:count]) + "/"
            file = self._library.nested.get(folder, "")
            if not file or file in self._observed.loaded or file in self._texts_to_load:
                continue
            skill = self._library.instructions_at(folder)
            if skill is not None:
                hint = f"The whole file is {file}."
                yield _TextToLoad(
                    file, f"{path} was touched", skill.body, (file,), "instructions", hint=hint
                )


def _skill_text(skill: Skill, why: str) -> _TextToLoad:
    return _TextToLoad(
        skill.name, why, skill.body, (skill.source,), "skill", hint=_read_hint(skill)
    )


def _read_hint(skill: Skill) -> str:
    return f"The whole file is {skill.source}." if skill.origin is Origin.REPOSITORY else ""


def _no_room_note(text: _TextToLoad) -> str:
    return render("agent/skill_no_room.md.j2", called=text.name, hint=text.hint).strip()
