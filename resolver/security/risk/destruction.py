"""Rules for commands with effects that outlive the agent's work: destruction and intrusion.

They destroy what that work does not own (disks, system directories, home directories, git history),
look for credentials, leave something behind that runs later, write outside of the repository, or
try to reach the machine around the sandbox.
"""

import re
from collections.abc import Iterator

from resolver.security.risk.execution import find_roots
from resolver.security.risk.expansion import OPAQUE
from resolver.security.risk.findings import (
    ENVIRONMENT,
    SECRET_WORD,
    USED,
    RiskFinding,
    high,
    is_secret_name,
    medium,
)
from resolver.security.risk.flows import READERS
from resolver.security.risk.paths import PathPlace, Paths, is_device
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


_TALKERS = frozenset({"echo", "printf", "test", "[", "[[", "git", "mkdir", "rmdir", "cd", "alias"})
"""Commands that don't read the files that they name."""

_PATTERN_FIRST = frozenset({"grep", "egrep", "fgrep", "rg", "ag", "sed", "awk", "gawk", "jq", "yq"})
"""Commands whose first operand is a pattern or a program, not a path."""

_WRITERS = frozenset({"cp", "mv", "tee", "install", "ln", "touch", "mkdir", "rsync", "truncate"})
_SEARCHED = re.compile(
    r"id_(?:rsa|dsa|ecdsa|ed25519|\*)|\*?\.(?:pem|p12|pfx|kdbx|keystore)$|credentials|\.netrc"
    r"|\.git-credentials|\.npmrc|\.pypirc|\.aws|\.ssh|authorized_keys|shadow|wallet\.dat|logins\.json"
    r"|PRIVATE KEY|password|passwd|secret|token|AKIA",
    re.I,
)
"""Names that a search for credentials looks for."""

_OUTSIDE = frozenset(
    {PathPlace.SYSTEM, PathPlace.SYSTEM_TOP, PathPlace.OTHER, PathPlace.GIT, PathPlace.IN_HOME}
)
_WIDE = frozenset({PathPlace.ROOT, PathPlace.HOME, PathPlace.SYSTEM_TOP, PathPlace.ABOVE})
_HANDS_OUT = {
    ("gh", "auth", "token"), ("git", "credential", "fill"),
    ("gcloud", "auth", "print-access-token"),
    ("aws", "sts", "get-session-token"), ("aws", "configure", "export-credentials"),
    ("gcloud", "auth", "print-identity-token"), ("az", "account", "get-access-token"),
    ("security", "find-generic-password", ""), ("security", "find-internet-password", ""),
    ("security", "dump-keychain", ""), ("secret-tool", "lookup", ""), ("pass", "show", ""),
    ("kubectl", "get", "secret"), ("kubectl", "get", "secrets"), ("vault", "read", ""),
}  # fmt: skip
"""Commands that print a credential, with their first two operands ("" for a missing one)."""

_NPM_SECRETS = ("_authtoken", "_password", ":_auth")
_ACCOUNTS = frozenset({"useradd", "adduser", "usermod", "passwd", "chpasswd", "visudo", "groupadd"})
_GIT_EXEC = re.compile(
    r"(?:core\.(?:hookspath|fsmonitor|sshcommand|pager|editor|gitproxy|askpass|alternaterefscommand)"
    r"|credential\..*helper|credential\.helper|diff\.external|(?:diff|merge|filter)\..+\."
    r"(?:command|textconv|driver|clean|smudge|process)|gpg\..*program|sequence\.editor|alias\..+"
    r"|include\.path|includeif\..+|url\..+\.(?:push)?insteadof|init\.templatedir|uploadpack\..+)$",
    re.I,
)
"""Keys of git's configuration whose value is executed, or redirects URLs."""

_WHEN = re.compile(r"now|noon|midnight|teatime|today|tomorrow|next|\d{1,2}:?\d{0,2}(?:am|pm)?$")
_ESCAPES = frozenset({"nsenter", "insmod", "modprobe", "kexec", "pivot_root", "debugfs", "unshare"})
_CONTAINERS = frozenset({"docker", "podman", "nerdctl", "ctr", "crictl", "kubectl", "lxc"})
_PRIVILEGED = re.compile(
    r"--privileged|--pid[= ]host|--cap-add|--net[= ]host|(?:-v|--volume|src)[= ]?/[:, ]"
)


def staying_findings(call: ShellCall) -> Iterator[RiskFinding]:
    """Yield findings about what the call would reveal or leave behind."""
    yield from _credentials(call)
    yield from _environment(call)
    yield from _persistence(call)
    yield from _escapes(call)
    for target in _written(call):
        yield from write_findings(target, call.paths)


def write_findings(target: str, paths: Paths) -> Iterator[RiskFinding]:
    """Yield findings about writing to a path."""
    if target.startswith("/dev/fd/") or not target:
        return
    if is_device(paths.absolute(target)):
        yield high("destructive", f"writes onto {target}")
    elif paths.is_hook(target) or paths.is_run_later(target):
        yield high("persistence", f"writes {target}")
    elif paths.is_kernel(target) or paths.is_escape(target):
        yield high("container_escape", f"writes {target}")
    elif paths.is_credential(target) or paths.is_credential_folder(target):
        yield medium("credential", f"writes {target}")
    elif (
        paths.place(target)
        in {PathPlace.SYSTEM, PathPlace.SYSTEM_TOP, PathPlace.OTHER, PathPlace.GIT}
        or paths.place(target) is PathPlace.IN_HOME
    ):
        yield medium("outside", f"writes {target}")


def read_findings(path: str, paths: Paths) -> Iterator[RiskFinding]:
    """Yield findings about reading a path."""
    if paths.is_credential(path):
        yield high("credential", f"reads {path}")
    elif paths.is_escape(path):
        yield high("container_escape", f"reads {path}")


def _paths_of(call: ShellCall) -> tuple[str, ...]:
    """Return the words of the call that may be paths."""
    words = list(call.operands)
    if call.name in _PATTERN_FIRST and not call.has("ef", "--regexp", "--file", "--expression"):
        words = words[1:]
    words += [a.partition("=")[2] for a in call.args if "=" in a and not a.startswith("=")]
    words += [a.partition("@")[2] for a in call.args if "@" in a and call.name == "curl"]
    return (*words, *call.reads_from)


def _credentials(call: ShellCall) -> Iterator[RiskFinding]:
    name = call.name
    for path in _paths_of(call) if name != "xargs" else call.reads_from:
        if call.paths.is_escape(path) and name not in {"echo", "printf", "grep", "rg"}:
            yield high("container_escape", call.text)
        if name in _TALKERS or not path:
            continue
        if call.paths.is_credential(path):
            quiet = name in {"rm", "chmod", "chown", "ls", "stat", "touch"}
            yield (medium if quiet else high)("credential", call.text)
        elif call.paths.is_credential_folder(path):
            takes = name in READERS or name in {"cp", "tar", "zip", "rsync", "scp", "find"}
            yield (high if takes else medium)("credential", call.text)
    if any((name, *call.operands[:n], *[""] * (2 - n)) in _HANDS_OUT for n in (1, 2)):
        yield high("credential", call.text)
    asked = call.operands[1:] if call.operands[:1] == ("config",) else ()
    if name in {"npm", "pnpm", "yarn"} and any(o.lower().endswith(_NPM_SECRETS) for o in asked):
        yield high("credential", call.text)
    if name == "cmdkey" or (name == "git" and git_words(call)[:1] == ("credential",)):
        yield high("credential", call.text)
    yield from _searches(call)


def _searches(call: ShellCall) -> Iterator[RiskFinding]:
    """Yield findings about searches of large parts of the file system for names of credentials."""
    words = " ".join(call.args)
    if call.name == "find":
        wide = any(call.paths.place(o) in _WIDE for o in call.args[:3] if not o.startswith("-"))
        if wide and _SEARCHED.search(words):
            yield high("credential", call.text)
    elif call.name in {"grep", "egrep", "rg", "ag"} and call.operands:
        roots = call.operands[1:]
        wide = any(call.paths.place(o) in _WIDE for o in roots)
        if wide and _SEARCHED.search(call.operands[0]):
            yield high("credential", call.text)
    elif call.name in {"locate", "mlocate", "plocate"} and _SEARCHED.search(words):
        yield high("credential", call.text)


def _environment(call: ShellCall) -> Iterator[RiskFinding]:
    if call.name in _PATTERN_FIRST and ENVIRONMENT in call.stdin.tags:
        looks = any(SECRET_WORD.search(word) for word in call.args)
        if looks and not call.has("v", "--invert-match"):
            yield high("credential", f"looks for secrets in the environment: {call.text}")
    elif call.name == "printenv" and any(is_secret_name(o) for o in call.operands):
        yield high("credential", call.text)
    elif call.name in {"echo", "printf"}:
        names = [n for word in call.args for n in USED.findall(word)]
        if any(is_secret_name(name) for name in names):
            yield high("credential", f"shows a secret of the environment: {call.text}")


def _persistence(call: ShellCall) -> Iterator[RiskFinding]:
    name = call.name
    if name == "git":
        yield from _git_settings(call)
        return
    stays = (
        (name == "crontab" and not call.has("lr"))
        or (name == "at" and call.operands[:1] and _WHEN.match(call.operands[0]))
        or name == "batch"
        or (name == "systemctl" and {"enable", "link", "edit"} & set(call.operands))
        or name in _ACCOUNTS
        or name in {"update-rc.d", "chkconfig", "ssh-copy-id", "launchctl", "setcap"}
    )
    if stays:
        yield high("persistence", call.text)


def _git_settings(call: ShellCall) -> Iterator[RiskFinding]:
    words = git_words(call)
    if words[:1] != ("config",):
        return
    rest = [w for w in words[1:] if not w.startswith("-")]
    reads = {"--get", "--get-all", "--list", "-l", "--get-regexp", "--unset", "--unset-all"}
    if rest[:1] in (["get"], ["list"], ["unset"]) or reads & set(words) or len(rest) < 2:
        return
    key, value = (rest[1], rest[2:3]) if rest[0] == "set" else (rest[0], rest[1:2])
    if not _GIT_EXEC.match(key):
        return
    text = value[0] if value else ""
    plain = key.lower().startswith("alias.") and not text.startswith("!")
    usual = key.lower() in {"core.pager", "core.editor", "sequence.editor"} and text in {
        "cat", "true", ":", "vim", "vi", "nano", "less", "delta", "",
    }  # fmt: skip
    if plain or usual:
        return
    inside = key.lower() == "core.hookspath" and call.paths.place(text) is PathPlace.INSIDE
    helper = key.lower() == "credential.helper" and text in {"store", "cache", "", "manager"}
    yield (medium if inside or helper else high)("persistence", call.text)


def _escapes(call: ShellCall) -> Iterator[RiskFinding]:
    name, text = call.name, call.text
    out = (
        (name in _ESCAPES and not call.has("", "--help", "--version"))
        or (name == "mount" and call.operands)
        or name == "chroot"
        or (name == "capsh" and call.args)
        or (name in {"gdb", "strace"} and re.search(r"(?:-p|--pid)[= ]?1\b", text))
        or (name in _CONTAINERS and (_PRIVILEGED.search(text) or ".sock" in text))
        or (name not in _TALKERS | {"grep", "rg"} and "docker.sock" in text)
    )
    if out:
        yield high("container_escape", text)


def _written(call: ShellCall) -> Iterator[str]:
    """Yield the paths that the call writes to."""
    yield from call.writes_to
    operands = call.operands
    if call.name in {"tee", "touch", "mkdir", "truncate"}:
        yield from operands
    elif call.name in _WRITERS and len(operands) > 1:
        yield operands[-1]
    elif call.name == "sed" and call.has("i", "--in-place"):
        yield from operands[1:] if not call.has("e", "--expression") else operands
    elif call.name == "dd":
        yield from (a[3:] for a in call.args if a.startswith("of="))
    elif call.name in {"curl", "wget"}:
        for index, arg in enumerate(call.args[:-1]):
            if arg in {"-o", "--output", "-O", "--output-document", "-P"}:
                following = call.args[index + 1]
                if not following.startswith(("-", "http")):
                    yield following
