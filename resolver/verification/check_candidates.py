"""Candidates for checks, and the choice of those that run the same tests only once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from posixpath import normpath
from shlex import quote
from typing import Literal

from resolver.config.templates import render
from resolver.models.verification import OmittedCheck, ProjectCheck
from resolver.security.shell.checks import read_checks
from resolver.verification.runner_commands import SimpleCommand, simple_commands

MAX_CHECKS = 20
"""Maximum number of checks that are discovered."""

MAX_OMITTED = 20
"""Maximum number of omitted checks that are named."""

MAX_COMMAND = 10_000
"""Maximum number of characters of a command, and of the value of a variable."""

OmissionCause = Literal["services", "network", "limit"]

_COMMAND = "command:"
"""Start of the keys of commands that run no known runner, script or target, such as linters."""


@dataclass(frozen=True)
class CheckCandidate:
    """A command that may become a check.

    keys: what the command is, so that a second route to the same tests is recognized: a runner in a
        folder ("pytest:web"), a package script ("script:test:"), a Makefile target ("make:test:"),
        or another command ("command:eslint .:").
    runs: keys of what the command runs in turn.
    """

    check: ProjectCheck
    keys: frozenset[str]
    runs: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Omission:
    """A check that can't be executed here.

    subject: what asks for it, as the subject of the sentence that gives the reason.
    names: what it lacks.
    keys: as in CheckCandidate. The omission is not reported if a chosen check covers all of them.
        Empty if it is always reported.
    """

    name: str
    command: str
    cause: OmissionCause
    subject: str
    names: tuple[str, ...] = ()
    keys: frozenset[str] = frozenset()

    def describe(self) -> OmittedCheck:
        """Return the omission with its reason in words."""
        reason = render(
            "verification/omitted_check.txt.j2",
            cause=self.cause,
            subject=self.subject,
            names=self.names,
        )
        return OmittedCheck(
            name=printable(self.name), command=self.command, reason=printable(reason.strip())
        )


@dataclass
class CheckChooser:
    """Collects candidates, the most direct first, and leaves out what is covered already."""

    checks: list[ProjectCheck] = field(default_factory=list)
    omissions: list[Omission] = field(default_factory=list)
    covered: set[str] = field(default_factory=set)

    def add(self, candidates: Iterable[CheckCandidate | Omission]) -> None:
        """Add the candidates that run something new, in their order."""
        for candidate in candidates:
            if isinstance(candidate, Omission):
                self.omissions.append(candidate)
            elif self._is_covered(candidate):
                self.covered |= candidate.keys
            elif is_executable(candidate.check):
                self._add(candidate)

    def _add(self, candidate: CheckCandidate) -> None:
        self.covered |= candidate.keys | candidate.runs
        names = {check.name for check in self.checks}
        if len(self.checks) >= MAX_CHECKS:
            check = candidate.check
            limit = (str(MAX_CHECKS),)
            self.omissions.append(Omission(check.name, check.command, "limit", check.name, limit))
        else:
            self.checks.append(_with_unique_name(candidate.check, names))

    def _is_covered(self, candidate: CheckCandidate) -> bool:
        if candidate.keys & self.covered:
            return True
        tests = {key for key in candidate.runs if not key.startswith(_COMMAND)}
        runs = tests or candidate.runs
        return bool(runs) and runs <= self.covered

    def omitted(self) -> tuple[OmittedCheck, ...]:
        """Return the checks that are not executed, each command once."""
        open_ones = {
            omission.command: omission
            for omission in reversed(self.omissions)
            if not omission.keys or not omission.keys <= self.covered
        }
        omitted = [candidate.describe() for candidate in reversed(open_ones.values())]
        return tuple(omitted[:MAX_OMITTED])


def is_executable(check: ProjectCheck) -> bool:
    """Return True if a shell can be given the command: it is of bounded length and has no NUL."""
    texts = (check.command, *check.environment.values())
    return all(len(text) <= MAX_COMMAND and "\0" not in text for text in texts)


def printable(text: str) -> str:
    """Return the text with a question mark for each character that is not printable."""
    return "".join(char if char.isprintable() else "?" for char in text)


def command_keys(command: str, folder: str = "") -> frozenset[str]:
    """Return the keys of the checks that a command runs, executed in a folder."""
    keys: set[str] = set()
    for simple in simple_commands(command):
        if simple.changes_folder:
            folder = enter_folder(folder, simple.words[1])
        elif key := _key(simple, folder):
            keys.add(key)
    return frozenset(keys)


def enter_folder(folder: str, name: str) -> str:
    """Return the folder after `cd NAME`; "" is the root."""
    path = normpath(f"{folder}/{name}" if folder else name)
    return "" if path == "." else path


def in_folder(command: str, folder: str) -> str:
    """Return the command, to be executed in the root, for a folder."""
    return f"cd {quote(folder)} && {command}" if folder else command


def with_folder(name: str, folder: str) -> str:
    """Return the name of a check in a folder."""
    return f"{name} ({folder})" if folder else name


def _key(command: SimpleCommand, folder: str) -> str:
    if command.runner:
        return f"{command.runner}:{folder}"
    if command.script:
        return f"script:{command.script}:{folder}"
    if command.target:
        return f"make:{command.target}:{folder}"
    text = " ".join(command.words)
    return f"{_COMMAND}{text}:{folder}" if text and _is_check(command.words) else ""


def _is_check(words: Sequence[str]) -> bool:
    return bool(read_checks(" ".join(map(quote, words))).checks)


def _with_unique_name(check: ProjectCheck, names: set[str]) -> ProjectCheck:
    name = printable(check.name)
    numbered = (f"{name} {number}" for number in range(2, MAX_CHECKS + 2))
    unique = (
        name
        if name not in names
        else next(numbered_name for numbered_name in numbered if numbered_name not in names)
    )
    return check.model_copy(update={"name": unique, "origin": printable(check.origin)})
