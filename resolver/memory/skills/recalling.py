"""Decides which skills and instructions a run loads, when, and why, before each call of the model.

The decision depends on the event log only, so a resumed run loads the same. Loaded text is appended
to the end of the conversation, each skill at most once, within fixed limits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from resolver.config.templates import render
from resolver.events.actions import Recall
from resolver.events.base import Source as By
from resolver.events.observations import RecallResult
from resolver.events.state import State
from resolver.memory.skills.lookup import TOOL, catalogue
from resolver.memory.skills.observed import ObservedText
from resolver.memory.skills.reading import Library
from resolver.memory.skills.skill import Origin, Skill, fill_task_skill
from resolver.memory.skills.triggers import Text, covers, find_triggers, prepare_text
from resolver.models.truncate import truncate_middle

MAX_FILE = 16_000
"""Maximum characters loaded of one file; the agent can read the rest itself."""

MAX_ALWAYS = 32_000
"""Maximum characters of everything that is loaded when a run begins."""

MAX_TRIGGERED = 48_000
"""Maximum characters of everything that is loaded later because a trigger matched."""

LEAST = 500
"""If less room than this is left, a note that there is no room is shown in place of the text."""

LIST = "the list of skills"
NOTES = "notes of earlier runs"

Loaded = tuple[Recall, RecallResult]
About = Literal["instructions", "skill", "task", "list", "notes"]


class Recaller(Protocol):
    """Decides what the agent is to be shown next."""

    def recall(self, state: State) -> Sequence[Loaded]:
        """Return the events to add to the stream before the model is called: each action followed
        by its result.

        The same log always gives the same answer. What the log already contains is not returned
        again.
        """
        ...


class Meaning(Protocol):
    """Selects skills by the topic of a text."""

    def nearest(self, text: str, skills: Sequence[Skill]) -> Sequence[tuple[Skill, str]]:
        """Return the skills on the same topic as the text, each with the reason in words."""
        ...


class NothingRecalled:
    """A recaller that never loads anything."""

    def recall(self, state: State) -> Sequence[Loaded]:  # noqa: ARG002 - the protocol
        return ()


@dataclass(frozen=True)
class NoteReader:
    """Holds the notes of earlier runs.

    text: the notes, one per line; "" if there are none.
    sources: the runs that wrote them.
    """

    text: str = ""
    sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Wanted:
    """A text to load. `hint` says how to read it in full when it is truncated.

    always: the text counts towards `MAX_ALWAYS`, otherwise towards `MAX_TRIGGERED`.
    """

    name: str
    why: str
    text: str
    sources: tuple[str, ...]
    about: About
    always: bool = False
    hint: str = ""


class SkillRecaller:
    """Loads the instructions, the skill that a person asked for, and skills whose triggers match.

    library: everything that can be loaded.
    roots: paths of the repository in the sandboxes that the log mentions.
    notes: notes of earlier runs.
    meaning: selects more skills by topic, among those whose triggers did not match, before the
        model's first reply; None to disable this.
    """

    def __init__(
        self,
        library: Library,
        roots: Sequence[str] = (),
        notes: NoteReader | None = None,
        meaning: Meaning | None = None,
    ) -> None:
        self._library = library
        self._notes = notes or NoteReader()
        self._meaning = meaning
        self._seen = ObservedText(library.paths, roots)
        self._wanted: dict[str, _Wanted] = {}
        self._always = {*(skill.name for skill in library.always), LIST, NOTES}

    def recall(self, state: State) -> Sequence[Loaded]:
        """See `Recaller`."""
        seen = self._seen
        begins = seen.look(state)
        if begins:
            self._wanted = {}
        if not seen.works_on_code:
            return ()
        if begins or seen.requests or seen.mentions or seen.touched:
            for one in self._called_for(begins):
                self._wanted.setdefault(one.name, one)
        missing = [one for name, one in self._wanted.items() if name not in seen.loaded]
        return self._told(missing) if missing else ()

    def _told(self, missing: Sequence[_Wanted]) -> list[Loaded]:
        always = sum(n for name, n in self._seen.loaded.items() if name in self._always)
        triggered = sum(self._seen.loaded.values()) - always
        room = {True: MAX_ALWAYS - always, False: MAX_TRIGGERED - triggered}
        told: list[Loaded] = []
        for one in missing:
            share = min(MAX_FILE, room[one.always])
            content = (
                truncate_middle(one.text, share, one.hint) if share >= LEAST else _no_room(one)
            )
            room[one.always] -= len(content)
            told.append(
                (
                    Recall(query=one.name, why=one.why, source=By.ENVIRONMENT),
                    RecallResult(
                        content=content,
                        about=one.about,
                        name=one.name,
                        sources=one.sources,
                        why=one.why,
                    ),
                )
            )
        return told

    def _called_for(self, begins: bool) -> Iterator[_Wanted]:
        """Yield everything that the new events call for, in the order in which it is shown."""
        if begins:
            yield from self._from_the_start()
        new = [skill for skill in self._library.skills if skill.name not in self._seen.loaded]
        requests = [prepare_text(text) for text in self._seen.requests]
        mentions = [prepare_text(text) for text in self._seen.mentions]
        for skill in new:
            words = _said(skill, requests)
            if not words and (mentioned := _said(skill, mentions)) and self._concerns(skill):
                words = mentioned
            if words:
                yield _of_skill(skill, f"“{words}” was said")
        for path in self._seen.touched:
            yield from self._nested(path)
        for path in self._seen.changed:
            for skill in new:
                if any(covers(glob, path) for glob in skill.globs):
                    yield _of_skill(skill, f"{path} was changed")
        if begins and self._meaning is not None and not self._seen.asked:
            rest = [s for s in new if s.kind == "knowledge" and s.name not in self._wanted]
            about = "\n\n".join((*self._seen.requests, *self._seen.mentions))
            for skill, why in self._meaning.nearest(about, rest):
                yield _of_skill(skill, why)

    def _concerns(self, skill: Skill) -> bool:
        """Return True if a word in a mention, rather than in the request, may load the skill.

        A skill of the repository itself always may. Another one may if it has no globs, or if the
        repository has files that match them.
        """
        if skill.origin is Origin.REPOSITORY or not skill.globs:
            return True
        paths = self._library.paths
        return any(covers(glob, path) for glob in skill.globs for path in paths)

    def _from_the_start(self) -> Iterator[_Wanted]:
        """Yield what is loaded when a run begins, and a skill that was asked for by command."""
        for skill in self._library.always:
            hint = f"The whole file is {skill.source}."
            sources = (skill.source,)
            yield _Wanted(
                skill.name, "always told", skill.body, sources, "instructions", True, hint
            )
        if self._notes.text:
            yield _Wanted(
                NOTES,
                "kept for this repository",
                self._notes.text,
                self._notes.sources,
                "notes",
                True,
            )
        trigger = self._seen.trigger
        asked_for = self._library.skill(trigger.named) if trigger is not None else None
        if trigger is not None and asked_for is not None:
            why = f"asked for as /{trigger.named}"
            text = fill_task_skill(asked_for, trigger.instruction)
            yield _Wanted(
                asked_for.name, why, text, (asked_for.source,), "task", hint=_hint(asked_for)
            )
        if TOOL in self._seen.tools and any(
            skill.origin is not Origin.SHIPPED for skill in self._library.skills
        ):
            text = catalogue(self._library.skills)
            yield _Wanted(LIST, "to choose from", text, (), "list", True)

    def _nested(self, path: str) -> Iterator[_Wanted]:
        """Yield the instructions of the folders that contain the path, the innermost last, because
        it takes precedence over the others."""
        parts = path.split("/")
        for count in range(1, len(parts) + 1):
            folder = "/".join(parts[:count]) + "/"
            file = self._library.nested.get(folder, "")
            if not file or file in self._seen.loaded or file in self._wanted:
                continue
            skill = self._library.instructions_at(folder)
            if skill is not None:
                hint = f"The whole file is {file}."
                yield _Wanted(
                    file, f"{path} was touched", skill.body, (file,), "instructions", hint=hint
                )


def _said(skill: Skill, texts: Sequence[Text]) -> str:
    """Return the first words in the texts that match a trigger of the skill, or ""."""
    matches = (find_triggers(trigger, text) for text in texts for trigger in skill.triggers)
    return next(filter(None, matches), "")


def _of_skill(skill: Skill, why: str) -> _Wanted:
    return _Wanted(skill.name, why, skill.body, (skill.source,), "skill", hint=_hint(skill))


def _hint(skill: Skill) -> str:
    return f"The whole file is {skill.source}." if skill.origin is Origin.REPOSITORY else ""


def _no_room(one: _Wanted) -> str:
    return render("agent/skill_no_room.md.j2", called=one.name, hint=one.hint).strip()
