"""Rules for commands that destroy what the agent's work does not own: disks, system directories,
home directories, git history."""

import re
from collections.abc import Iterator

from resolver.security.risk.execution import find_roots
from resolver.security.risk.expansion import OPAQUE
from resolver.security.risk.findings import RiskFinding, high, medium
from resolver.security.risk.paths import PathPlace, is_device
from resolver.security.risk.python import WHOLE
from resolver.security.risk.walk import ShellCall

_BEYOND = frozenset({PathPlace.SYSTEM, PathPlace.IN_HOME, PathPlace.OTHER})
_FORMATS = re.compile(r"(?:mkfs(?:\.\w+)?|mke2fs|wipefs|mkswap|sgdisk|blkdiscard|hdparm)$")
_OFF = frozenset({"shutdown", "reboot", "halt", "poweroff", "telinit"})
_REWRITES = frozenset({"filter-branch", "filter-repo"})
_PASSING = re.compile(
    r"/\.git/(?:[\w-]+\.lock|(?:rebase-(?:merge|apply)|sequencer)|(?:MERGE|CHERRY_PICK|REVERT)_\w+)$"
)
"""Files that git leaves behind when it is interrupted, and that have to be removed to continue."""

_SETUID = re.compile(r"(?:[ugoa]*\+[rwxXt]*s|[2467][0-7]{3})")


def destruction_findings(call: ShellCall) -> Iterator[RiskFinding]:
    """Yield findings about what the call would destroy."""
    name = call.name
    if name in {"rm", "rmdir", "shred", "unlink", "srm"}:
        yield from _removal(call)
    elif name == "find" and "-delete" in call.args:
        wide = [r for r in find_roots(call) if call.paths.place(r) is not PathPlace.REPOSITORY]
        yield from _targets(call, tuple(wide), whole=True)
    elif name in {"chmod", "chown", "chgrp"}:
        yield from _modes(call)
    elif name == "dd":
        for word in call.args:
            if word.startswith("of=") and is_device(call.paths.absolute(word[3:])):
                yield high("destructive", call.text)
    elif name in _OFF or (_FORMATS.match(name) and not _formats_a_file(call)):
        yield high("destructive", call.text)
    elif name == "kill" and "-1" in call.args[1:]:
        yield high("destructive", "ends every process")
    elif name == "mv" and call.operands[:1]:
        yield from _targets(call, call.operands[:-1], whole=True)
    elif name == "git":
        yield from _git(call)
    for target in call.writes_to:
        if is_device(call.paths.absolute(target)):
            yield high("destructive", f"writes onto {target}")


def _formats_a_file(call: ShellCall) -> bool:
    """Return True if the call creates a file system in a file of the agent's own, or shows help."""
    if call.has("", "-h", "--help", "--version"):
        return True
    places = {call.paths.place(o) for o in call.operands if "/" in o or "." in o}
    known = not any(c in call.text for c in (OPAQUE, "$"))
    return known and bool(places) and places <= {PathPlace.INSIDE, PathPlace.TEMPORARY}


def _removal(call: ShellCall) -> Iterator[RiskFinding]:
    if "--no-preserve-root" in call.args:
        yield high("destructive", call.text)
    whole = call.name == "shred" or call.has("rR", "--recursive")
    if call.name == "shred" and any(is_device(o) for o in call.operands):
        yield high("destructive", call.text)
    if call.name != "rmdir":
        yield from _targets(call, call.operands, whole=whole)


def _targets(call: ShellCall, targets: tuple[str, ...], *, whole: bool) -> Iterator[RiskFinding]:
    for target in targets:
        place = call.paths.place(target)
        if target in {"*", "./*", ".*"} and place is PathPlace.INSIDE:
            place = PathPlace.REPOSITORY if call.paths.cwd == call.paths.root else place
        if place is PathPlace.GIT and _PASSING.search(call.paths.absolute(target)):
            continue
        if place in {PathPlace.REPOSITORY} and whole:
            plain = target in {".", "./", "*", "./*"}
            yield (medium if plain else high)("destructive", f"{call.name} {target}: {place.value}")
        elif place in WHOLE and place is not PathPlace.SYSTEM and whole:
            yield high("destructive", f"{call.name} {target}: {place.value}")
        elif place is PathPlace.SYSTEM and whole:
            deep = call.paths.absolute(target).count("/") > 3
            yield (medium if deep else high)("destructive", f"{call.name} {target}: {place.value}")
        elif place in WHOLE or place in _BEYOND:
            yield medium("outside", f"{call.name} {target}: {place.value}")
        elif whole and target == OPAQUE:
            yield medium("outside", f"{call.name} on what is not known before")


def _modes(call: ShellCall) -> Iterator[RiskFinding]:
    targets = call.operands[1:]
    if call.has("R", "--recursive"):
        for target in targets:
            place = call.paths.place(target)
            if place in WHOLE - {PathPlace.REPOSITORY, PathPlace.GIT}:
                yield high("destructive", f"{call.text}: {place.value}")
    if call.name == "chmod" and call.operands and _SETUID.fullmatch(call.operands[0]):
        if any(call.paths.place(t) is not PathPlace.INSIDE for t in targets):
            yield high("persistence", call.text)
        else:
            yield medium("persistence", call.text)


def git_words(call: ShellCall) -> tuple[str, ...]:
    """Return the subcommand of git and its arguments, without git's own options."""
    words, at = call.args, 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in {"-C", "-c", "--git-dir", "--work-tree", "--namespace"} else 1
    return words[at:]


def _git(call: ShellCall) -> Iterator[RiskFinding]:
    words = git_words(call)
    if not words:
        return
    sub, rest = words[0], words[1:]
    if rest[:1] in {("--help",), ("-h",)}:
        return
    if sub in _REWRITES or (sub == "reflog" and rest[:1] in {("expire",), ("delete",)}):
        yield high("git_history", call.text)
    elif sub == "gc" and any(w.startswith("--prune") for w in rest):
        yield medium("git_history", call.text)
    elif sub == "update-ref" and "-d" in rest:
        yield high("git_history", call.text)
    elif sub == "push":
        yield from _push(call, rest)
    elif sub == "rm" and not {"--cached", "-n", "--dry-run"} & set(rest):
        for word in rest:
            if not word.startswith("-") and call.paths.place(word) is PathPlace.REPOSITORY:
                yield medium("destructive", call.text)


def _push(call: ShellCall, rest: tuple[str, ...]) -> Iterator[RiskFinding]:
    short = "".join(w[1:] for w in rest if w.startswith("-") and not w.startswith("--"))
    forces = {"--force", "--mirror", "--delete", "--prune"} & {w.partition("=")[0] for w in rest}
    removes = any(w.startswith((":", "+")) for w in rest[1:])
    if "--dry-run" in rest or "-n" in rest:
        return
    if forces or "f" in short or "d" in short or removes:
        yield high("git_history", call.text)
    else:
        yield medium("publishes", call.text)
