"""Finds and checks the images that a Dockerfile names, before it is built.

The engine's builder looks up a name among its local images first, and accepts hexadecimal digits as
the beginning of an image id. A build could thereby copy from images that the engine keeps for
another repository. So every name must be a name in a registry, and a Dockerfile that can't be read
with certainty is refused.
Syntax: https://docs.docker.com/reference/dockerfile/
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from resolver.config.image_reference import could_be_id, parse_registry_reference
from resolver.errors import UsageError

_CONTINUES: Final = re.compile(r"\\[ \t]*$")
_DIRECTIVE: Final = re.compile(r"#\s*escape\s*=(?!\s*\\\s*$)", re.IGNORECASE)
_HEREDOC: Final = re.compile(r"(?:^|\s)\d*<<-?[^\s<=]")
_QUOTING: Final = str.maketrans("", "", "\"'\\")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Control characters. Programs differ in whether a line of nothing but such characters is empty."""

_BASE: Final = re.compile(
    r"(?:--[^\s\"'\\]+ )*(?:\"([^\s\"'\\]+)\"|([^\s\"'\\]+))(?: as ([^\s\"'\\]+))?", re.IGNORECASE
)
_ARGUMENT: Final = re.compile(
    r"([A-Za-z_][A-Za-z0-9_]*)(?:=(?:\"([^\"'\\]*)\"|'([^\"'\\$]*)'|([^\s\"'\\]*)))?(?: |$)"
)
"""The two patterns match what follows FROM and ARG, in the forms that have only one reading. Quotes
and backslashes within a word are excluded: where a variable's name ends would then depend on the
order in which they are processed."""

_COPIED: Final = re.compile(r"--from=(\S*)", re.IGNORECASE)
_SPACE: Final = re.compile(r"[\t\v\f\r ]+")
_VARIABLE: Final = re.compile(
    r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(?::([-+])([^${}]*))?\})"
)
_MAX_EXPANDED: Final = 1_000


def read_base_images(path: str, text: str, args: Mapping[str, str]) -> tuple[str, ...]:
    """Return the base images of the Dockerfile's stages, as references to registries.

    args: build arguments.
    Raises UsageError for a name that is not a name in a registry, and for one that can't be read.
    """
    content = text.removeprefix("\ufeff")
    if found := _CONTROL.search(content):
        raise _unreadable(path, f"the character {found[0]!r}")
    if any(_DIRECTIVE.match(line.strip()) for line in content.split("\n")):
        raise _unreadable(path, "another escape character than \\")
    reading = _DockerfileReader(path, args)
    for line in _instructions(content):
        reading.take(line)
    return tuple(dict.fromkeys(reading.bases))


def refuse_triggers(path: str, image: str, triggers: Sequence[str]) -> None:
    """Raise UsageError if an `ONBUILD` instruction of a base image copies from an image.

    A base image adds such instructions to every build on it. Source:
    https://docs.docker.com/reference/dockerfile/#onbuild
    """
    for trigger in triggers:
        plain = trigger.translate(_QUOTING)
        if "from=" in plain.lower() or "\n" in trigger or "<<" in trigger or trigger[:1] == "#":
            raise UsageError(
                f"{path} is built from {image}, which adds `{trigger[:80]!r}` to each build",
                "build from an image that copies nothing from others with ONBUILD",
            )


class _DockerfileReader:
    """The state of reading a Dockerfile line by line."""

    def __init__(self, path: str, args: Mapping[str, str]) -> None:
        self.bases: list[str] = []
        self._path = path
        self._args = args
        self._values: dict[str, str] = {}
        self._stages: set[str] = set()
        self._stage = ""
        self._begun = False

    def take(self, line: str) -> None:
        """Process one instruction."""
        instruction, _, rest = _SPACE.sub(" ", line.strip()).partition(" ")
        name = instruction.upper()
        while name == "ONBUILD":
            instruction, _, rest = rest.partition(" ")
            name = instruction.upper()
        if _HEREDOC.search(rest) and name in {"RUN", "COPY", "ADD"}:
            raise _unreadable(self._path, "a here-document")
        match name:
            case "FROM":
                self._begin_stage(rest)
            case "ARG" if not self._begun:
                self._declare(rest)
            case "COPY" | "ADD":
                self._copy(rest)

    def _begin_stage(self, rest: str) -> None:
        """Begin a stage and check its base image.

        A stage can be referred to only after it has ended; until then its name refers to an image.
        """
        self._begun = True
        self._stages |= {self._stage} - {""}
        found = _BASE.fullmatch(rest)
        if found is None:
            raise _unreadable(self._path, f"`FROM {rest[:80]}`")
        image = self._expand(found[1] or found[2])
        if image.lower() not in {*self._stages, "scratch"}:
            self.bases.append(self._check(image, "FROM"))
        self._stage = (found[3] or "").lower()

    def _declare(self, rest: str) -> None:
        at = 0
        while at < len(rest):
            found = _ARGUMENT.match(rest, at)
            if found is None or found[1] in self._values:
                raise _unreadable(self._path, f"`ARG {rest[:80]}`")
            at = found.end()
            default = found[2] or found[3] or found[4] or ""
            self._values[found[1]] = self._args.get(found[1], self._expand(default))

    def _copy(self, rest: str) -> None:
        for found in _COPIED.finditer(rest.translate(_QUOTING)):
            named = found[1]
            if not named.isdecimal() and named.lower() not in self._stages:
                self._check(named, "COPY --from")

    def _expand(self, text: str) -> str:
        def value(found: re.Match[str]) -> str:
            known = self._values.get(found[1] or found[2], "")
            if found[3]:
                return found[4] if bool(known) == (found[3] == "+") else known
            return known

        expanded = _VARIABLE.sub(value, text)
        if "$" in expanded or len(expanded) > _MAX_EXPANDED:
            raise _unreadable(self._path, f"the name {text[:80]!r}")
        return expanded

    def _check(self, image: str, instruction: str) -> str:
        where = f"{self._path}, {instruction},"
        reference = parse_registry_reference(image, where)
        if could_be_id(image):
            raise UsageError(
                f"{where} names {image!r}, which an engine may take for the beginning of an "
                "image's id",
                f"write {reference} for the image of that name in its registry",
            )
        return reference


def _instructions(text: str) -> Iterator[str]:
    """Yield each instruction as one line. Comments and empty lines do not end a continued line."""
    joined = ""
    for line in text.split("\n"):
        content = line.rstrip("\r")
        if not content.strip() or content.lstrip().startswith("#"):
            continue
        more = _CONTINUES.search(content)
        joined += content[: more.start()] if more else content
        if more is None:
            yield joined
            joined = ""
    if joined:
        yield joined


def _unreadable(path: str, what: str) -> UsageError:
    return UsageError(
        f"{path} has {what}, so that Resolver can't tell which images its build takes",
        "write each image's name out, without here-documents; or build it yourself and name the "
        "image in the settings",
    )
