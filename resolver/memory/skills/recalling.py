"""Which skills a run is told, when and why: asked before each question to the model.

The answer is read off the log and nothing else, so a resumed run is told the same. What is loaded
comes at the end of the conversation, each skill at most once, and not more than fits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from resolver.config.templates import render
from resolver.events.actions import Recall
from resolver.events.base import Source as By
from resolver.events.observations import RecallResult
from resolver.events.state import State
from resolver.memory.skills.globs import covers
from resolver.memory.skills.lookup import TOOL, catalogue
from resolver.memory.skills.observed import ObservedText
from resolver.memory.skills.reading import Library
from resolver.memory.skills.requests import fill_task_skill
from resolver.memory.skills.skill import Origin, Skill
from resolver.memory.skills.triggers import Text, find_triggers, prepare_text
from resolver.memory.text import truncate_middle

MAX_FILE = 16_000
"""Characters of one file that are told; the agent can read the rest itself."""

MAX_ALWAYS = 32_000
"""Characters of what is told at the beginning."""

MAX_TRIGGERED = 48_000
"""Characters of all that is loaded for a reason that came up."""

LEAST = 500
"""Less room than this is none."""

LIST = "the list of skills"
NOTES = "notes of earlier runs"

Loaded = tuple[Recall, RecallResult]
About = Literal["instructions", "skill", "task", "list", "notes"]


class Recaller(Protocol):
    """Knows what the agent should be told next."""

    def recall(self, state: State) -> Sequence[Loaded]:
        """What to add to the stream before the model is asked, each action followed by its result.

        The same log always gives the same answer; what it holds already is not given again.
        """
        ...


class Meaning(Protocol):
    """Chooses skills by what a text is about."""

    def nearest(self, text: str, skills: Sequence[Skill]) -> Sequence[tuple[Skill, str]]:
        """The skills that the text is about, each with the reason in words."""
        ...


class NothingRecalled:
    """Tells nothing."""

    def recall(self, state: State) -> Sequence[Loaded]:  # noqa: ARG002 - the protocol
        return ()


@dataclass(frozen=True)
class NoteReader:
    """What earlier runs noted. sources: those runs. text: "" for nothing."""

    text: str = ""
    sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Wanted:
    """Something to tell. `hint` says how to get at it whole."""

    name: str
    why: str
    text: str
    sources: tuple[str, ...]
    about: About
    always: bool = False
    hint: str = ""


class SkillRecaller:
    """Tells instructions, the skill that a person asked for, and those whose triggers are met.

    library: what there is. roots: the repository's paths in the sandboxes of the log. notes: of
    earlier runs. meaning: chooses among the skills without a met trigger, before the first reply
    of the model; None for not at all.
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
        """All that the new events call for, in the order in which it is told."""
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
        """Whether a word in passing can mean the skill: a repository's own is about the repository,
        another only if the repository has files that it is about."""
        if skill.origin is Origin.REPOSITORY or not skill.globs:
            return True
        paths = self._library.paths
        return any(covers(glob, path) for glob in skill.globs for path in paths)

    def _from_the_start(self) -> Iterator[_Wanted]:
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
        """Instructions of the folders around a path, the nearest last: it says the last word."""
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
    """The first words in the texts that are a trigger of the skill; "" for none."""
    matches = (find_triggers(trigger, text) for text in texts for trigger in skill.triggers)
    return next(filter(None, matches), "")


def _of_skill(skill: Skill, why: str) -> _Wanted:
    return _Wanted(skill.name, why, skill.body, (skill.source,), "skill", hint=_hint(skill))


def _hint(skill: Skill) -> str:
    return f"The whole file is {skill.source}." if skill.origin is Origin.REPOSITORY else ""


def _no_room(one: _Wanted) -> str:
    return render("agent/skill_no_room.md.j2", called=one.name, hint=one.hint).strip()
