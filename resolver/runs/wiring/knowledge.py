"""What a run knows beside its task: instructions, skills, notes of earlier runs; and what it leaves
for later ones. Everything is read at commits where only people with write access have written.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from resolver.config.settings import Settings
from resolver.config.templates import folder as prompts
from resolver.errors import WorkspaceError
from resolver.events.actions import Recall, Remember
from resolver.events.base import ActionBase, ObservationBase
from resolver.events.lifecycle import ServiceReplied, Warned
from resolver.events.log import Event
from resolver.events.state import State
from resolver.events.stream import EventStream
from resolver.git.git import Credential
from resolver.git.workspace import Workspace
from resolver.llm.config import ModelConfig
from resolver.llm.embeddings import Embedder
from resolver.llm.registry import service_models
from resolver.memory import notes
from resolver.memory.notes import NoteStore
from resolver.memory.skills import lookup
from resolver.memory.skills.embedding_index import Index, RecordedIndex
from resolver.memory.skills.reading import (
    AGENTS_REPOSITORY,
    MICROAGENTS,
    OPEN_FORM,
    Library,
    SkillSource,
    read_library,
    shipped,
)
from resolver.memory.skills.recalling import Meaning, NoteReader, SkillRecaller
from resolver.memory.skills.requests import fill_task_skill
from resolver.memory.skills.skill import Origin
from resolver.models.run import Completion, Trigger, TriggerKind
from resolver.runs.wiring.models import model_config
from resolver.runs.wiring.sandbox import RunHost

logger = logging.getLogger("resolver.runs.wiring.knowledge")

OF_ORGANIZATION = {".agents": (*OPEN_FORM, *MICROAGENTS, *AGENTS_REPOSITORY),
                   ".github": (*OPEN_FORM, *MICROAGENTS)}  # fmt: skip
"""Repositories of an owner whose skills are for all of its repositories, and their folders."""


@dataclass(frozen=True)
class Knowledge:
    """What was read. embedding: the model that finds skills by meaning, and the folder for what it
    said; None for no such search."""

    library: Library = field(default_factory=Library)
    notes: NoteReader = field(default_factory=NoteReader)
    embedding: tuple[ModelConfig, Path] | None = None

    @property
    def tasks(self) -> tuple[tuple[str, str], ...]:
        """Names that a person may call by a slash, each with a line of what it does."""
        tasks = (skill for skill in self.library.skills if skill.kind == "task")
        return tuple(
            (name, skill.description) for skill in tasks for name in (skill.name, *skill.commands)
        )

    def recaller(
        self, roots: Sequence[str], stream: EventStream, recording: Sequence[Event] = ()
    ) -> SkillRecaller:
        """Tells the run's agents. roots: the repository's paths in the sandboxes of the log.
        recording: what a replayed run was told by meaning, it is told again."""
        meaning: Meaning | None = RecordedIndex(recording) if recording else None
        if self.embedding is not None and meaning is None:

            def paid(completion: Completion) -> None:
                stream.add(ServiceReplied(service="skills", completion=completion))

            def told(words: str) -> None:
                stream.add(Warned(about="skills", message=words))

            meaning = Index(Embedder(*self.embedding, paid), told)
        return SkillRecaller(self.library, roots, self.notes, meaning)

    def hosted(self, state: State) -> dict[type[ActionBase], Callable[[Any], ObservationBase]]:
        """What the host does for the agents. state: the run's."""
        return {
            Recall: partial(lookup.answer_recall, self.library),
            Remember: partial(notes.answer_note, state),
        }


def read_knowledge(
    workspace: Workspace,
    settings: Settings,
    trigger: Trigger,
    host: RunHost,
    credential: Credential | None,
    folder: Path,
    is_public: Callable[[], bool | None],
) -> Knowledge:
    """Everything there is for this run. folder: for clones of the organisation's repositories.
    is_public: whether anybody can read this one, None where the forge does not say.

    Raises Refused when the trigger asks for a task without what the task needs.
    """
    own = SkillSource(Origin.REPOSITORY, workspace.trusted_paths(), workspace.read_trusted)
    sources = [own, shipped(prompts() / "skills")]
    if settings.organization_skills and trigger.kind is not TriggerKind.LOCAL:
        sources += _organization(settings, trigger.repository, credential, folder, is_public)
    library = read_library(sources)
    if trigger.named and (asked_for := library.skill(trigger.named)) is not None:
        fill_task_skill(asked_for, trigger.instruction)
    store = note_store(settings, host)
    embedding = None
    if settings.skills_embedding_model:
        named = "skills_embedding_model"
        config = service_models(model_config(settings), settings.skills_embedding_model, named)
        embedding = (config, host.cache / "embeddings")
    return Knowledge(library, store.read(trigger.repository) if store else NoteReader(), embedding)


def note_store(settings: Settings, host: RunHost) -> NoteStore | None:
    """Where notes are kept by the program; None where the settings or the machine have no place."""
    if settings.notes != "store" or host.notes is None:
        return None
    return NoteStore(host.notes)


def _organization(
    settings: Settings,
    repository: str,
    credential: Credential | None,
    folder: Path,
    is_public: Callable[[], bool | None],
) -> list[SkillSource]:
    """The owner's repositories for all of its others. One that is not there, or that this run's
    token can't read, has none: the forge does not say which of the two it is. A run on a public
    repository reads public ones alone, since what it is told can come out in its words and log."""
    owner, _, name = repository.partition("/")
    server = settings.github_server_url.rstrip("/")
    if credential is not None:
        public = is_public()
        if public is None:
            public = _can_be_read(f"{server}/{repository}.git")
        credential = None if public else credential
    found: list[SkillSource] = []
    for shared, folders in OF_ORGANIZATION.items():
        if shared == name.lower():
            continue
        url = f"{server}/{owner}/{shared}.git"
        try:
            clone = Workspace.clone(url, folder / f"shared{shared}", depth=1, credential=credential)
            paths = clone.trusted_paths()
        except WorkspaceError as error:
            logger.info("no skills from %s: %s", url, error.what)
            continue
        prefix = f"{owner}/{shared}: "
        found.append(SkillSource(Origin.ORGANIZATION, paths, clone.read, prefix, folders))
    return found


def _can_be_read(url: str) -> bool:
    """Whether anybody can read the repository."""
    try:
        Workspace.branches(url)
    except WorkspaceError:
        return False
    return True
