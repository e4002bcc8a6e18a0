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
    UNSET_VARIABLE,
    RiskFinding,
    high,
    is_secret_name,
    medium,
)
from resolver.security.risk.flows import READERS, downloaded_files
from resolver.security.risk.paths import PathPlace, Paths, is_device
from resolver.security.risk.python import PROTECTED_PLACES
from resolver.security.risk.walk import ShellCall

_OUTSIDE_REPOSITORY = frozenset({PathPlace.SYSTEM, PathPlace.IN_HOME, PathPlace.OTHER})
_FORMATS = re.compile(r"(?:mkfs(?:\.\w+)?|mke2fs|wipefs|mkswap|sgdisk|blkdiscard|hdparm)$")
_POWER_OFF = frozenset({"shutdown", "reboot", "halt", "poweroff", "telinit"})
_REWRITES = frozenset({"filter-branch", "filter-repo"})
_TEMPORARY_GIT_FILES = re.compile(
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
        wide = [
            redirect
            for redirect in find_roots(call)
            if call.paths.place(redirect) is not PathPlace.REPOSITORY
        ]
        yield from _targets(call, tuple(wide), is_recursive=True)
    elif name in {"chmod", "chown", "chgrp"}:
        yield from _modes(call)
    elif name == "dd":
        for word in call.args:
            if word.startswith("of=") and is_device(call.paths.absolute(word[3:])):
                yield high("destructive", call.text)
    elif name in _POWER_OFF or (_FORMATS.match(name) and not _formats_a_file(call)):
        yield high("destructive", call.text)
    elif name == "kill" and "-1" in call.args[1:]:
        yield high("destructive", "ends every process")
    elif name == "mv" and call.operands[:1]:
        yield from _targets(call, call.operands[:-1], is_recursive=True)
    elif name == "git":
        yield from _git(call)
    for target in call.writes_to:
        if is_device(call.paths.absolute(target)):
            yield high("destructive", f"writes onto {target}")


def _formats_a_file(call: ShellCall) -> bool:
    """Return True if the call creates a file system in a file of the agent's own, or shows help."""
    if call.has("", "-h", "--help", "--version"):
        return True
    places = {
        call.paths.place(operand) for operand in call.operands if "/" in operand or "." in operand
    }
    is_known = not any(character in call.text for character in (OPAQUE, "$"))
    return is_known and bool(places) and places <= {PathPlace.INSIDE, PathPlace.TEMPORARY}


def _removal(call: ShellCall) -> Iterator[RiskFinding]:
    if "--no-preserve-root" in call.args:
        yield high("destructive", call.text)
    is_recursive = call.name == "shred" or call.has("rR", "--recursive")
    if call.name == "shred" and any(is_device(operand) for operand in call.operands):
        yield high("destructive", call.text)
    if call.name != "rmdir":
        yield from _targets(call, call.operands, is_recursive=is_recursive)


def _targets(
    call: ShellCall, targets: tuple[str, ...], *, is_recursive: bool
) -> Iterator[RiskFinding]:
    for target in targets:
        place = call.paths.place(target)
        if target in {"*", "./*", ".*"} and place is PathPlace.INSIDE:
            place = PathPlace.REPOSITORY if call.paths.cwd == call.paths.root else place
        if place is PathPlace.GIT and _TEMPORARY_GIT_FILES.search(call.paths.absolute(target)):
            continue
        if place in {PathPlace.REPOSITORY} and is_recursive:
            is_current_folder = target in {".", "./", "*", "./*"}
            yield (medium if is_current_folder else high)(
                "destructive", f"{call.name} {target}: {place.value}"
            )
        elif place in PROTECTED_PLACES and place is not PathPlace.SYSTEM and is_recursive:
            yield high("destructive", f"{call.name} {target}: {place.value}")
        elif place is PathPlace.SYSTEM and is_recursive:
            is_deep = call.paths.absolute(target).count("/") > 3
            yield (medium if is_deep else high)(
                "destructive", f"{call.name} {target}: {place.value}"
            )
        elif place in PROTECTED_PLACES or place in _OUTSIDE_REPOSITORY:
            yield medium("outside", f"{call.name} {target}: {place.value}")
        elif is_recursive and target == OPAQUE:
            yield medium("outside", f"{call.name} on what is not known before")


def _modes(call: ShellCall) -> Iterator[RiskFinding]:
    targets = call.operands[1:]
    if call.has("R", "--recursive"):
        for target in targets:
            place = call.paths.place(target)
            if place in PROTECTED_PLACES - {PathPlace.REPOSITORY, PathPlace.GIT}:
                yield high("destructive", f"{call.text}: {place.value}")
    if call.name == "chmod" and call.operands and _SETUID.fullmatch(call.operands[0]):
        if any(call.paths.place(t) is not PathPlace.INSIDE for t in targets):
            yield high("persistence", call.text)
        else:
            yield medium("persistence", call.text)


def git_words(call: ShellCall) -> tuple[str, ...]:
    """Return the subcommand of git and its arguments, without git's own options."""
    words, index = call.args, 0
    while index < len(words) and words[index].startswith("-"):
        index += 2 if words[index] in {"-C", "-c", "--git-dir", "--work-tree", "--namespace"} else 1
    return words[index:]


def _git(call: ShellCall) -> Iterator[RiskFinding]:
    words = git_words(call)
    if not words:
        return
    subcommand, arguments = words[0], words[1:]
    if arguments[:1] in {("--help",), ("-h",)}:
        return
    if subcommand in _REWRITES or (
        subcommand == "reflog" and arguments[:1] in {("expire",), ("delete",)}
    ):
        yield high("git_history", call.text)
    elif subcommand == "gc" and any(argument.startswith("--prune") for argument in arguments):
        yield medium("git_history", call.text)
    elif subcommand == "update-ref" and "-d" in arguments:
        yield high("git_history", call.text)
    elif subcommand == "push":
        yield from _push(call, arguments)
    elif subcommand == "rm" and not {"--cached", "-n", "--dry-run"} & set(arguments):
        for word in arguments:
            if not word.startswith("-") and call.paths.place(word) is PathPlace.REPOSITORY:
                yield medium("destructive", call.text)


def _push(call: ShellCall, arguments: tuple[str, ...]) -> Iterator[RiskFinding]:
    short_options = "".join(
        argument[1:]
        for argument in arguments
        if argument.startswith("-") and not argument.startswith("--")
    )
    forces = {"--force", "--mirror", "--delete", "--prune"} & {
        argument.partition("=")[0] for argument in arguments
    }
    removes = any(argument.startswith((":", "+")) for argument in arguments[1:])
    if "--dry-run" in arguments or "-n" in arguments:
        return
    if forces or "f" in short_options or "d" in short_options or removes:
        yield high("git_history", call.text)
    else:
        yield medium("publishes", call.text)


_NON_READERS = frozenset(
    {"echo", "printf", "test", "[", "[[", "git", "mkdir", "rmdir", "cd", "alias"}
)
"""Commands that don't read the files that they name."""

_PATTERN_FIRST = frozenset({"grep", "egrep", "fgrep", "rg", "ag", "sed", "awk", "gawk", "jq", "yq"})
"""Commands whose first operand is a pattern or a program, not a path."""

_WRITERS = frozenset({"cp", "mv", "tee", "install", "ln", "touch", "mkdir", "rsync", "truncate"})
_CREDENTIAL_SEARCH = re.compile(
    r"id_(?:rsa|dsa|ecdsa|ed25519|\*)|\*?\.(?:pem|p12|pfx|kdbx|keystore)$|credentials|\.netrc"
    r"|\.git-credentials|\.npmrc|\.pypirc|\.aws|\.ssh|authorized_keys|shadow|wallet\.dat|logins\.json"
    r"|PRIVATE KEY|password|passwd|secret|token|AKIA",
    re.I,
)
"""Names that a search for credentials looks for."""

_WIDE_PLACES = frozenset({PathPlace.ROOT, PathPlace.HOME, PathPlace.SYSTEM_TOP, PathPlace.ABOVE})
_PRINTS_CREDENTIAL = {
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
_ACCOUNT_COMMANDS = frozenset(
    {"useradd", "adduser", "usermod", "passwd", "chpasswd", "visudo", "groupadd"}
)
_GIT_EXECUTED_KEYS = re.compile(
    r"(?:core\.(?:hookspath|fsmonitor|sshcommand|pager|editor|gitproxy|askpass|alternaterefscommand)"
    r"|credential\..*helper|credential\.helper|diff\.external|(?:diff|merge|filter)\..+\."
    r"(?:command|textconv|driver|clean|smudge|process)|gpg\..*program|sequence\.editor|alias\..+"
    r"|include\.path|includeif\..+|url\..+\.(?:push)?insteadof|init\.templatedir|uploadpack\..+)$",
    re.I,
)
"""Keys of git's configuration whose value is executed, or redirects URLs."""

_AT_TIME = re.compile(r"now|noon|midnight|teatime|today|tomorrow|next|\d{1,2}:?\d{0,2}(?:am|pm)?$")
_ESCAPE_COMMANDS = frozenset(
    {"nsenter", "insmod", "modprobe", "kexec", "pivot_root", "debugfs", "unshare"}
)
_CONTAINER_COMMANDS = frozenset({"docker", "podman", "nerdctl", "ctr", "crictl", "kubectl", "lxc"})
_PRIVILEGED = re.compile(
    r"--privileged|--pid[= ]host|--cap-add|--net[= ]host|(?:-v|--volume|src)[= ]?/[:, ]"
)


def lasting_findings(call: ShellCall) -> Iterator[RiskFinding]:
    """Yield findings about what the call would reveal or leave behind."""
    yield from _credentials(call)
    yield from _environment(call)
    yield from _persistence(call)
    yield from _escapes(call)
    for target in _written_paths(call):
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
    words += [
        argument.partition("=")[2]
        for argument in call.args
        if "=" in argument and not argument.startswith("=")
    ]
    words += [
        argument.partition("@")[2]
        for argument in call.args
        if "@" in argument and call.name == "curl"
    ]
    return (*words, *call.reads_from)


def _credentials(call: ShellCall) -> Iterator[RiskFinding]:
    name = call.name
    for path in _paths_of(call) if name != "xargs" else call.reads_from:
        if call.paths.is_escape(path) and name not in {"echo", "printf", "grep", "rg"}:
            yield high("container_escape", call.text)
        if name in _NON_READERS or not path:
            continue
        if call.paths.is_credential(path):
            reads_no_content = name in {"rm", "chmod", "chown", "ls", "stat", "touch"}
            yield (medium if reads_no_content else high)("credential", call.text)
        elif call.paths.is_credential_folder(path):
            reads_content = name in READERS or name in {"cp", "tar", "zip", "rsync", "scp", "find"}
            yield (high if reads_content else medium)("credential", call.text)
    if any(
        (name, *call.operands[:count], *[""] * (2 - count)) in _PRINTS_CREDENTIAL
        for count in (1, 2)
    ):
        yield high("credential", call.text)
    config_operands = call.operands[1:] if call.operands[:1] == ("config",) else ()
    if name in {"npm", "pnpm", "yarn"} and any(
        operand.lower().endswith(_NPM_SECRETS) for operand in config_operands
    ):
        yield high("credential", call.text)
    if name == "cmdkey" or (name == "git" and git_words(call)[:1] == ("credential",)):
        yield high("credential", call.text)
    yield from _searches(call)


def _searches(call: ShellCall) -> Iterator[RiskFinding]:
    """Yield findings about searches of large parts of the file system for names of credentials."""
    words = " ".join(call.args)
    if call.name == "find":
        is_wide = any(
            call.paths.place(operand) in _WIDE_PLACES
            for operand in call.args[:3]
            if not operand.startswith("-")
        )
        if is_wide and _CREDENTIAL_SEARCH.search(words):
            yield high("credential", call.text)
    elif call.name in {"grep", "egrep", "rg", "ag"} and call.operands:
        roots = call.operands[1:]
        is_wide = any(call.paths.place(operand) in _WIDE_PLACES for operand in roots)
        if is_wide and _CREDENTIAL_SEARCH.search(call.operands[0]):
            yield high("credential", call.text)
    elif call.name in {"locate", "mlocate", "plocate"} and _CREDENTIAL_SEARCH.search(words):
        yield high("credential", call.text)


def _environment(call: ShellCall) -> Iterator[RiskFinding]:
    if call.name in _PATTERN_FIRST and ENVIRONMENT in call.stdin.tags:
        seeks_secret = any(SECRET_WORD.search(word) for word in call.args)
        if seeks_secret and not call.has("v", "--invert-match"):
            yield high("credential", f"looks for secrets in the environment: {call.text}")
    elif call.name == "printenv" and any(is_secret_name(operand) for operand in call.operands):
        yield high("credential", call.text)
    elif call.name in {"echo", "printf"}:
        names = [n for word in call.args for n in UNSET_VARIABLE.findall(word)]
        if any(is_secret_name(name) for name in names):
            yield high("credential", f"shows a secret of the environment: {call.text}")


def _persistence(call: ShellCall) -> Iterator[RiskFinding]:
    name = call.name
    if name == "git":
        yield from _git_settings(call)
        return
    is_persistent = (
        (name == "crontab" and not call.has("lr"))
        or (name == "at" and call.operands[:1] and _AT_TIME.match(call.operands[0]))
        or name == "batch"
        or (name == "systemctl" and {"enable", "link", "edit"} & set(call.operands))
        or name in _ACCOUNT_COMMANDS
        or name in {"update-rc.d", "chkconfig", "ssh-copy-id", "launchctl", "setcap"}
    )
    if is_persistent:
        yield high("persistence", call.text)


def _git_settings(call: ShellCall) -> Iterator[RiskFinding]:
    words = git_words(call)
    if words[:1] != ("config",):
        return
    operands = [word for word in words[1:] if not word.startswith("-")]
    read_options = {"--get", "--get-all", "--list", "-l", "--get-regexp", "--unset", "--unset-all"}
    if (
        operands[:1] in (["get"], ["list"], ["unset"])
        or read_options & set(words)
        or len(operands) < 2
    ):
        return
    key, value = (
        (operands[1], operands[2:3]) if operands[0] == "set" else (operands[0], operands[1:2])
    )
    if not _GIT_EXECUTED_KEYS.match(key):
        return
    text = value[0] if value else ""
    is_plain_alias = key.lower().startswith("alias.") and not text.startswith("!")
    is_usual_program = key.lower() in {"core.pager", "core.editor", "sequence.editor"} and text in {
        "cat", "true", ":", "vim", "vi", "nano", "less", "delta", "",
    }  # fmt: skip
    if is_plain_alias or is_usual_program:
        return
    is_repository_hook = (
        key.lower() == "core.hookspath" and call.paths.place(text) is PathPlace.INSIDE
    )
    is_known_helper = key.lower() == "credential.helper" and text in {
        "store",
        "cache",
        "",
        "manager",
    }
    yield (medium if is_repository_hook or is_known_helper else high)("persistence", call.text)


def _escapes(call: ShellCall) -> Iterator[RiskFinding]:
    name, text = call.name, call.text
    is_escape = (
        (name in _ESCAPE_COMMANDS and not call.has("", "--help", "--version"))
        or (name == "mount" and call.operands)
        or name == "chroot"
        or (name == "capsh" and call.args)
        or (name in {"gdb", "strace"} and re.search(r"(?:-p|--pid)[= ]?1\b", text))
        or (name in _CONTAINER_COMMANDS and (_PRIVILEGED.search(text) or ".sock" in text))
        or (name not in _NON_READERS | {"grep", "rg"} and "docker.sock" in text)
    )
    if is_escape:
        yield high("container_escape", text)


def _written_paths(call: ShellCall) -> Iterator[str]:
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
        yield from (argument[3:] for argument in call.args if argument.startswith("of="))
    elif call.name in {"curl", "wget"}:
        yield from downloaded_files(call)
