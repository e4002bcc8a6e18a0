"""Reads skills from their files: those of a repository, of its organization, and the built-in ones.

Files are read only from commits and folders that the caller trusts. A file that can't be read is
left out and reported as a problem. An agent that asks for a skill by name is answered from them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from resolver.config.templates import render
from resolver.errors import FrontmatterError, ResolverError
from resolver.events.actions import Recall
from resolver.events.observations import RecallResult
from resolver.memory.frontmatter import read_document, validate_document
from resolver.memory.skills.skill import (
    MAX_DESCRIPTION_LENGTH,
    MAX_NAME_LENGTH,
    Kind,
    Origin,
    Skill,
    SkillHead,
    to_skill_name,
)
from resolver.security.invisible_text import without_invisible

INSTRUCTION_FILES = (
    "AGENTS.md",
    ".github/copilot-instructions.md",
    "CLAUDE.md",
    ".cursorrules",
    ".openhands/microagents/repo.md",
)
"""Instruction files that every run gets, in the order in which they are shown."""

NESTED_INSTRUCTION_FILES = ("AGENTS.md", "CLAUDE.md")
"""Instruction files that apply to a folder and everything below it. If a folder has several, only
the first of this list counts."""

SKILL_FILE = "SKILL.MD"
"""File name, in capitals, of a skill that has a folder of its own (https://agentskills.io)."""

SKILL_FOLDERS = (".agents/skills/",)
MICROAGENT_FOLDERS = (".openhands/skills/", ".openhands/microagents/")
AGENTS_REPOSITORY_FOLDERS = ("skills/",)
"""Additional skills folder in an organization's `.agents` repository, where the leading `.agents/`
may be omitted from the path."""

MAX_SKILLS = 200
MAX_FILE_LENGTH = 64_000
"""Maximum characters of a skill file; a longer file is left out."""

Read = Callable[[str], bytes | None]
"""Returns a file's content by its path; None if there is no such file or it is a symbolic link."""


@dataclass(frozen=True)
class SkillSource:
    """Represents a commit or folder that skills are read from.

    paths: its files, symbolic links excluded.
    prefix: text put before a path in messages and in `Skill.source`, to name the origin.
    folders: folders in which skills are searched.
    """

    origin: Origin
    paths: tuple[str, ...]
    read: Read
    prefix: str = ""
    folders: tuple[str, ...] = SKILL_FOLDERS + MICROAGENT_FOLDERS


class Library:
    """Holds everything that was read. Names are unique: of skills with the same name, the one whose
    origin comes first in `Origin` is kept.

    Never raises because of a file's content: an invalid file is left out and named in `problems`.

    always: instructions shown when a run begins, in order.
    nested: path of the instruction file by the folder it applies to (with a trailing slash).
    problems: messages that say what was left out and why.
    """

    def __init__(self, sources: Iterable[SkillSource] = ()) -> None:
        self.always: list[Skill] = []
        self.nested: dict[str, str] = {}
        self.problems: list[str] = []
        self._skills: dict[str, Skill] = {}
        self._read: Read = lambda _: None
        for source in sorted(sources, key=lambda one: list(Origin).index(one.origin)):
            self._take(source)

    @property
    def skills(self) -> tuple[Skill, ...]:
        """The skills, those of the repository first."""
        return tuple(self._skills.values())

    def skill(self, name: str) -> Skill | None:
        """Return the skill with that name or command, or None. A leading slash is ignored."""
        skill_name = to_skill_name(name)
        by_name = (skill for skill in self.skills if skill.name == skill_name)
        by_command = (skill for skill in self.skills if skill_name in skill.commands)
        return next(by_name, None) or next(by_command, None) if skill_name else None

    def instructions_at(self, folder: str) -> Skill | None:
        """Return the instructions that apply to a folder of `nested`.

        None if the file is empty or too large to be read.
        """
        path = self.nested[folder]
        try:
            return _instructions(path, without_invisible(_decode(self._read(path) or b"")))
        except ResolverError:
            return None  # too large

    def _take(self, source: SkillSource) -> None:
        if source.origin is Origin.REPOSITORY:
            self._read = source.read
            self._read_instructions(source)
        files = sorted(_skill_files(source))
        for path, folder in files[:MAX_SKILLS]:
            skill = self._read_skill(source, path, folder)
            if skill is None:
                continue
            if skill.kind == "always":
                self.always.append(replace(skill, name=skill.source))
                continue
            first = self._skills.setdefault(skill.name, skill)
            if first is not skill and first.origin is source.origin:
                self.problems.append(
                    f"{skill.source}: {first.source} has the name {skill.name} as well"
                )
        if len(files) > MAX_SKILLS:
            self.problems.append(
                f"{source.prefix}{files[MAX_SKILLS][0]}: only the first {MAX_SKILLS} skills "
                "are read"
            )

    def _read_instructions(self, source: SkillSource) -> None:
        present = set(source.paths)
        texts: set[str] = set()
        for path in (p for p in INSTRUCTION_FILES if p in present):
            text = self._read_text(source, path)
            skill = _instructions(path, text) if text else None
            if skill is not None and skill.body not in texts:
                texts.add(skill.body)
                self.always.append(skill)
        for name in reversed(NESTED_INSTRUCTION_FILES):
            found = sorted(path for path in source.paths if path.endswith(f"/{name}"))
            self.nested |= {path.removesuffix(name): path for path in found}

    def _read_skill(self, source: SkillSource, path: str, folder: str) -> Skill | None:
        text = self._read_text(source, path)
        if not text:
            return None
        try:
            return _parse_skill(text, path, folder, source.prefix, source.origin)
        except FrontmatterError as error:
            self.problems.append(f"{error.what}; it is left out")
            return None

    def _read_text(self, source: SkillSource, path: str) -> str | None:
        try:
            content = source.read(path) or b""
        except ResolverError as error:
            self.problems.append(f"{source.prefix}{path}: {error.what}; it is left out")
            return None
        decoded = _decode(content)
        # Whoever reviewed the file did not see these characters, and a model reads them.
        text = without_invisible(decoded)
        if hidden := len(decoded) - len(text):
            self.problems.append(
                f"{source.prefix}{path}: {hidden} invisible characters are left out of it"
            )
        if len(text) > MAX_FILE_LENGTH and path not in INSTRUCTION_FILES:
            what = f"it has more than {MAX_FILE_LENGTH} characters; it is left out"
            self.problems.append(f"{source.prefix}{path}: {what}")
            return None
        return text


RECALL_TOOL = "recall"
"""Name of the tool, and of the tag in the tags dialect."""

MAX_LINE_LENGTH = 200


def answer_recall(library: Library, action: Recall) -> RecallResult:
    """Return the skill that the query names, or the list to choose from."""
    query = action.query.strip()
    skill = library.skill(query)
    if skill is None:
        text = render_skill_list(library.skills, query[:MAX_LINE_LENGTH] or None)
        return RecallResult(content=text, about="list", why="asked for")
    return RecallResult(
        content=skill.body,
        about="skill",
        name=skill.name,
        sources=(skill.source,),
        why="asked for",
    )


def render_skill_list(skills: Sequence[Skill], unknown: str | None = None) -> str:
    """Return the list of skills with their descriptions, in the order given.

    unknown: a query that matched no skill, to say so.
    """
    entries = [
        (skill.name, " ".join(skill.description.split())[:MAX_LINE_LENGTH]) for skill in skills
    ]
    return render("agent/skill_list.md.j2", skills=entries, unknown=unknown).strip()


def is_shown_to_agents(path: str) -> bool:
    """Return True if later runs show the file to agents, as instructions or as a skill."""
    name = path.rpartition("/")[2]
    return (
        path in INSTRUCTION_FILES
        or name in NESTED_INSTRUCTION_FILES
        or path.startswith((".agents/", ".openhands/"))
    )


def built_in_skills(folder: Path) -> SkillSource:
    """Return the source of the built-in skills. folder: contains one Markdown file per skill."""
    files = {f".agents/skills/{file.name}": file for file in sorted(folder.glob("*.md"))}

    def read(path: str) -> bytes | None:
        return files[path].read_bytes() if path in files else None

    return SkillSource(Origin.SHIPPED, tuple(files), read, "shipped with Resolver: ")


def _decode(content: bytes) -> str:
    return content.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")


def _instructions(path: str, text: str) -> Skill | None:
    """Return the instructions in a file, None if there are none.

    A file with invalid frontmatter is used as a whole: too much text is better than a missing rule.
    """
    try:
        body = read_document(text, path).body.strip()
    except FrontmatterError:
        body = text.strip()
    return Skill(path, "", body, path, Origin.REPOSITORY, "always") if body else None


def _skill_files(source: SkillSource) -> Iterator[tuple[str, str]]:
    """Yield the path of each skill file with the folder of `source.folders` that contains it."""
    for path in source.paths:
        folder = next((f for f in source.folders if path.startswith(f)), None)
        if folder is None or path in INSTRUCTION_FILES:
            continue
        *parts, name = path.removeprefix(folder).split("/")
        if name.upper() == SKILL_FILE and len(parts) == 1:
            yield path, folder
        elif parts and folder not in MICROAGENT_FOLDERS:
            # microagents may be sorted into subfolders; in other places, a subfolder belongs to
            # one skill, and its other Markdown files are material of that skill
            continue
        elif name.endswith(".md") and name.upper() not in {"README.MD", SKILL_FILE}:
            yield path, folder


def _parse_skill(text: str, path: str, folder: str, prefix: str, origin: Origin) -> Skill:
    """Return the skill in a file's text. Raises FrontmatterError.

    path: of the file. folder: the folder of `SkillSource.folders` that contains it. prefix, origin:
    those of its source.
    """
    document = read_document(text, prefix + path)
    head = validate_document(document, SkillHead)
    commands = tuple(
        to_skill_name(t) for t in head.triggers if t.startswith("/") and to_skill_name(t)
    )
    words = tuple(t for t in head.triggers if not t.startswith("/"))
    globs = (*head.globs, *head.paths)
    body = document.body.strip()
    if not body:
        raise FrontmatterError(document.path, 1, "there is no text below the front matter")
    return Skill(
        name=to_skill_name(head.name or "") or _name_from_path(path),
        description=head.description or _first_line(body),
        body=body,
        source=prefix + path,
        origin=origin,
        kind=_kind(head, bool(words or globs), bool(commands), folder),
        commands=commands,
        triggers=words,
        globs=globs,
    )


def _kind(head: SkillHead, is_triggered: bool, has_command: bool, folder: str) -> Kind:
    if head.type == "task" or has_command:
        return "task"
    if head.type == "repo":
        return "always"
    untriggered = not is_triggered and head.type != "knowledge"
    return "always" if untriggered and folder in MICROAGENT_FOLDERS else "knowledge"


def _name_from_path(path: str) -> str:
    *_, folder, file = ("", *path.split("/"))
    name = folder if file.upper() == SKILL_FILE else file.removesuffix(".md")
    return to_skill_name(name) or path[-MAX_NAME_LENGTH:]


def _first_line(body: str) -> str:
    line = body.partition("\n")[0].strip("# ")
    return line[:MAX_DESCRIPTION_LENGTH]
