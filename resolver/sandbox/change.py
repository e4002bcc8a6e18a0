"""Checks the repository out in the sandbox, and exports the agent's change as git objects.

It runs inside the sandbox, with the standard library and the toolbox's git. The change is exported
with a private git directory, index and configuration in `scratch`. The repository's own `.git`
belongs to the agent and is never read again after the checkout, so the agent may rewrite, break or
delete it.
"""

import hashlib
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from . import setup_files
from .changed_paths import TreeComparison
from .spool import readable
from .wire import ActionFailed, BaselineResult, ChangeResult, CheckoutResult

TIMEOUT_SECONDS = 240.0
"""Seconds that one git command may take; less than the host waits for an answer."""

COMPARISON_SECONDS = 20.0
"""Seconds that a git command may take that compares the tree after an action; less than the host
waits after the action's own timeout."""

MAX_BYTES = 1 << 30
"""Maximum total size in bytes of the new and changed files that are exported."""

MAX_FILES = 100_000
"""Maximum number of new and changed files that are exported."""

MAX_LISTED = 100
"""Maximum number of paths that are listed as left out."""

_COMMITTER = "Resolver sandbox"

# Passed to each command (see _environment): this has precedence over every configuration file that
# a program in the sandbox may have written. Hooks and fsmonitor are off because they run programs.
_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.excludesFile": "/dev/null",
    "core.attributesFile": "/dev/null",
    "core.fileMode": "true",
    "core.symlinks": "true",
    "core.ignoreCase": "false",
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.untrackedCache": "false",
    "core.quotePath": "false",
    "advice.addEmbeddedRepo": "false",
    # These objects are temporary: speed matters more than size and than safety from a crash.
    "core.compression": "0",
    "core.fsync": "none",
    # Git sorts objects so that the old version of a file comes right before the new one: one
    # candidate is enough.
    "pack.window": "1",
    # Processes that write the files of a checkout, from 100 files on. Making a file takes longer
    # than unpacking its content.
    "checkout.workers": "4",
    "gc.auto": "0",
    "maintenance.auto": "false",
}

# Git reports an unreadable folder only on stderr. LC_ALL=C keeps the message in English. Git cuts a
# message after 4 kB, so the end is missing if the path is longer than the kernel allows (PATH_MAX).
_UNREADABLE_FOLDER = re.compile(
    rb"could not open directory '(.*?)(?:/': |\n(?=warning: |error: |\Z))", re.DOTALL
)

PATH_MAX = 4096
"""Maximum number of bytes of a path, with the NUL at its end: linux/limits.h."""

MAX_PATH_SHOWN = 300
"""Bytes of a path that are listed as left out."""


def checkout(
    root: str, git_dir: str, commit: str, branch: str, git: str, scratch: str
) -> CheckoutResult:
    """Check the repository out at `commit` in the empty folder `root`, with its own `.git`.

    A folder in which a set-up was saved keeps the files that the set-up created; only the files of
    the earlier checkout are removed.

    git_dir: the git directory that the host has copied into the sandbox; it is removed.
    branch: branch that HEAD points to; "" for a detached HEAD.
    git: path of the git program.
    scratch: folder outside `root` for the private git directory of `export_change`.
    Raises ActionFailed if `root` is not empty or git fails.
    """
    os.makedirs(root, exist_ok=True)
    private_git_dir, agent_git_dir = _private_git_dir(scratch), os.path.join(root, ".git")
    is_prepared = setup_files.has_baseline(private_git_dir)
    private = _Git(git, root, scratch, private_git_dir)
    patterns = setup_files.remove_checkout(private_git_dir, root, private.run)
    if not is_prepared and os.listdir(root):
        raise ActionFailed(f"{root} is not empty: the repository can't be checked out there")
    try:
        # Hard links instead of copies of packs: git never writes into an existing pack.
        shutil.copytree(git_dir, private_git_dir, copy_function=_link)
        setup_files.exclude_from_change(private_git_dir, patterns)
        shutil.copytree(private_git_dir, agent_git_dir, copy_function=_link)
    except OSError as error:
        raise ActionFailed(f"the repository's git directory can't be taken: {error}") from error
    shutil.rmtree(git_dir, ignore_errors=True)
    agent = private._replace(git_dir=agent_git_dir)
    target = ["-B", branch, commit] if branch else ["--detach", commit]
    try:
        agent.run(["checkout", "--quiet", "--force", *target, "--"])
    except ActionFailed as error:
        names = agent.run(["ls-tree", "-r", "-z", "--name-only", commit]).split(b"\0")
        raise ActionFailed(_too_long_path(root, names) or str(error)) from error
    # The timestamp is copied too: git compares it with those of the files, to detect a file that
    # was changed within the resolution of the clock after the index was written ("racily clean").
    # See https://git-scm.com/docs/racy-git
    shutil.copy2(os.path.join(agent_git_dir, "index"), os.path.join(private_git_dir, "index"))
    files = agent.run(["ls-files", "-z"]).count(b"\0")
    return CheckoutResult(commit=commit, files=files)


def _too_long_path(root: str, names: Sequence[bytes]) -> str:
    """Return what is wrong if a file's path is longer than the kernel allows, else "".

    Git says so at the end of a message that it cuts.
    """
    longest = max(names, key=len)
    if len(os.fsencode(root)) + 1 + len(longest) < PATH_MAX:
        return ""
    return (
        f"the repository has a path of {len(longest)} bytes, which is longer than Linux allows "
        f"below {root}: {readable(os.fsdecode(_cut(longest)))}"
    )


def set_baseline(root: str, scratch: str, base: str, git: str) -> BaselineResult:
    """Make the current state of the root the starting point; see wire.BaselineResult."""
    private = _Git(git, root, scratch, _private_git_dir(scratch))
    return setup_files.reset_to_baseline(private.git_dir, root, base, private.run)


def compare_tree(root: str, scratch: str, git: str) -> TreeComparison:
    """Return a comparison that starts with the present state of the root."""
    git_dir, folder = _private_git_dir(scratch), os.path.join(scratch, "comparison")
    os.makedirs(folder, exist_ok=True)
    index = shutil.copy2(os.path.join(git_dir, "index"), folder)
    own_index = _Git(git, root, scratch, git_dir, index, timeout=COMPARISON_SECONDS)
    return TreeComparison(root, own_index.run)


def export_change(root: str, scratch: str, base: str, git: str) -> ChangeResult:
    """Write the working tree as a commit on top of `base`, in a bundle in `scratch`.

    base: the commit that was checked out. The change starts with the index of that checkout.

    Files that git ignores are left out unless `base` has them. Contents are stored by git's own
    rules: line ends as .gitattributes says, but no filter programs. A folder that is a git
    repository of its own is stored as git does it, as a link to its commit. Sockets and named pipes
    are left out. A path that git can't add (unreadable, or a repository without a commit) stays as
    in `base` and is listed in `left_out`. New caches and build output are left out and listed in
    `generated`, unless `base` tracks files of such a name.

    Raises ActionFailed if the change can't be exported.
    """
    private_git_dir = _private_git_dir(scratch)
    if not os.path.isdir(private_git_dir):
        raise ActionFailed(f"{private_git_dir} is gone: without it the change can't be taken out")
    if os.path.islink(root) or not os.path.isdir(root):
        raise ActionFailed(f"the repository's folder {root} is gone")
    try:
        # GIT_DIR and GIT_INDEX_FILE make git use the private directory and a throwaway index on the
        # agent's working tree. Neither `.git` in the root nor its index or configuration takes
        # part, and a failed export leaves no state behind.
        with tempfile.TemporaryDirectory(prefix="change-", dir=scratch) as folder:
            # Files that were not touched since the checkout are not read, so rules written later
            # (.gitattributes) can't change how they are stored.
            index = shutil.copy2(os.path.join(private_git_dir, "index"), folder)
            exclude = os.path.join(folder, "exclude")
            # Git ignores this setting if the file does not exist.
            settings = ("-c", f"core.excludesFile={exclude}")
            own_index = _Git(git, root, scratch, private_git_dir, index, settings)
            return _export(own_index, base, exclude)
    except OSError as error:
        raise ActionFailed(f"the change can't be written: {error}") from error


def _export(git: "_Git", base: str, exclude: str) -> ChangeResult:
    run = git.run
    generated = _stage_files(git, exclude)
    left_out = _find_left_out(git)
    run(["update-index", "-z", "--index-info"], _unchanged(git.root, run([*_DIFF_INDEX, base])))
    tree = _text(run(["write-tree"]))
    commit, path, size = base, None, 0
    if tree != _text(run(["rev-parse", f"{base}^{{tree}}"])):
        message = ["-m", "The working tree of a sandbox"]
        commit = _text(run(["commit-tree", "-p", base, *message, tree]))
        path = os.path.join(git.scratch, f"change-{commit}.bundle")
        # A bundle contains refs, not commits.
        run(["update-ref", _REF, commit])
        run(["bundle", "create", "--quiet", path, _REF, f"^{base}"])
        run(["update-ref", "-d", _REF])
        size = os.path.getsize(path)
    return ChangeResult(
        tree=tree, commit=commit, bundle=path, size=size, left_out=left_out, generated=generated
    )


def _stage_files(git: "_Git", exclude: str) -> list[str]:
    """Add the new and changed files to the index. Return new caches and build output, which are
    left out.

    exclude: path of the file that makes git ignore them.
    """

    root, run = git.root, git.run

    def paths(args: Sequence[str]) -> list[bytes]:
        return run(args).split(b"\0")[:-1]

    new_files = paths(_LIST_NEW)
    patterns = setup_files.find_patterns(new_files, lambda: paths(["ls-files", "-z"]))
    excluded = _exclude_patterns(exclude, patterns, new_files, lambda: paths(_LIST_NEW))
    names = [*paths(_LIST_CHANGED), *(name for name in new_files if name not in excluded)]
    check_file_count(names)
    _check_size(root, names)
    # Exit code 1 means that some paths could not be added; they are listed below.
    run(["add", "--all", "--ignore-errors"], accepted=(0, 1))
    caches = setup_files.name_left_out(excluded, patterns)
    return [readable(os.fsdecode(name)) for name in caches]


_REF = "refs/resolver/change"
"""Name of the commit in the bundle."""

_LIST_UNADDED = ["ls-files", "-z", "--modified", "--others", "--exclude-standard"]
_LIST_NEW = ["ls-files", "-z", "--others", "--exclude-standard"]
# By stat data alone: contents are read once, when they are added.
_LIST_CHANGED = ["diff-files", "-z", "--name-only"]
_DIFF_INDEX = ["diff-index", "--cached", "-z", "--raw", "--no-renames", "--no-abbrev"]


def _private_git_dir(scratch: str) -> str:
    return os.path.join(scratch, "repository.git")


def _link(source: str, target: str) -> str:
    """Hard-link a pack, which is never written again; copy any other file."""
    if source.endswith((".pack", ".idx", ".rev")):
        try:
            os.link(source, target)
            return target
        except OSError:
            # another file system, or one without links
            pass
    return shutil.copy2(source, target)


def check_file_count(names: Sequence[bytes]) -> None:
    """Raise ActionFailed if there are more than MAX_FILES new and changed files."""
    if len(names) > MAX_FILES:
        raise ActionFailed(
            f"{len(names)} files are new or changed, above the limit of {MAX_FILES}: "
            "delete them, or let git ignore them"
        )


def _check_size(root: str, names: Sequence[bytes]) -> None:
    """Raise ActionFailed if the files have more than MAX_BYTES together."""
    size = 0
    for name in names:
        try:
            size += os.lstat(os.path.join(os.fsencode(root), name)).st_size
        except OSError:
            # Deleted, or in a folder that can't be read: git reports the latter itself.
            continue
    if size > MAX_BYTES:
        raise ActionFailed(
            f"new and changed files have {size} bytes, above the limit of {MAX_BYTES}: "
            "delete them, or let git ignore them"
        )


def _unchanged(root: str, changed: bytes) -> bytes:
    """Return index entries of `base` for files whose bytes are the same as in `base`.

    Git would store them anew if .gitattributes asks for other line ends than they were committed
    with.
    """
    entries = []
    fields = changed.split(b"\0")
    for meta, path in zip(fields[:-1:2], fields[1::2], strict=False):
        old_mode, mode, old_id, _, status = meta[1:].split(b" ")
        if status != b"M" or old_mode[:3] != b"100":
            continue
        if _blob_id(os.path.join(os.fsencode(root), path)) == old_id:
            entries.append(b"%s %s\t%s\0" % (mode, old_id, path))
    return b"".join(entries)


def _exclude_patterns(
    file: str,
    patterns: Sequence[bytes],
    new_files: Sequence[bytes],
    list_new: Callable[[], list[bytes]],
) -> set[bytes]:
    """Make git ignore the patterns from now on, and return the new files that this leaves out.

    A file that the repository's .gitignore includes by name (`!name`) stays in the change.
    """
    if not patterns:
        return set()
    with open(file, "wb") as exclude_file:
        exclude_file.writelines(pattern + b"\n" for pattern in patterns)
    return set(new_files) - set(list_new())


def _find_left_out(git: "_Git") -> list[str]:
    """Return the paths that git should have added and did not, at most MAX_LISTED."""
    process = git.call(_LIST_UNADDED)
    unreadable = [_cut(folder) + b"/" for folder in _UNREADABLE_FOLDER.findall(process.stderr)]
    names = sorted({name for name in (*process.stdout.split(b"\0"), *unreadable) if name})
    return [readable(os.fsdecode(name)) for name in names[:MAX_LISTED]]


def _cut(path: bytes) -> bytes:
    return path if len(path) <= MAX_PATH_SHOWN else path[:MAX_PATH_SHOWN] + b"..."


def _blob_id(path: bytes) -> bytes:
    """Return git's object id of the file's bytes, without any conversion."""
    digest = hashlib.sha1()
    try:
        with open(path, "rb") as file:
            digest.update(b"blob %d\0" % os.fstat(file.fileno()).st_size)
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    except OSError as error:
        raise ActionFailed(f"{os.fsdecode(path)} can't be read: {error.strerror}") from error
    return digest.hexdigest().encode()


class _Git(NamedTuple):
    """Git on the working tree `root`, independent of what programs in the sandbox have written.

    program: path of git.
    scratch: HOME, and the folder in place of ~/.config.
    git_dir, index_file: the git directory, and its index if that is another file than usual.
    settings: further options for each command.
    timeout: seconds that one command may take.
    """

    program: str
    root: str
    scratch: str
    git_dir: str
    index_file: str = ""
    settings: tuple[str, ...] = ()
    timeout: float = TIMEOUT_SECONDS

    def run(
        self, args: Sequence[str], stdin: bytes = b"", accepted: tuple[int, ...] = (0,)
    ) -> bytes:
        """Run git and return its stdout.

        accepted: exit codes that are not a failure.
        Raises ActionFailed with the end of stderr if git fails.
        """
        process = self.call(args, stdin)
        if process.returncode == -signal.SIGXFSZ:
            limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
            raise ActionFailed(
                f"git {args[0]} was stopped at a file of more than {limit} bytes, the most that "
                "one file in the sandbox may have"
            )
        if process.returncode not in accepted:
            error_lines = process.stderr.decode("utf-8", "replace").splitlines()
            error_end = "\n".join(error_lines[-10:])[-2000:]
            raise ActionFailed(f"git {args[0]} failed ({process.returncode}):\n{error_end}")
        return process.stdout

    def call(self, args: Sequence[str], stdin: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
        """Run git and return the finished process. Raises ActionFailed at a timeout."""
        variables = {"GIT_DIR": self.git_dir, "GIT_WORK_TREE": self.root}
        if self.index_file:
            variables["GIT_INDEX_FILE"] = self.index_file
        try:
            return subprocess.run(
                [self.program, *self.settings, *args],
                cwd=self.root,
                env=_environment(self.scratch, variables),
                input=stdin,
                capture_output=True,
                timeout=self.timeout,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ActionFailed(
                f"git {args[0]} did not end within {self.timeout:.0f} seconds"
            ) from error
        except OSError as error:
            raise ActionFailed(f"git can't be run: {error}") from error


def _environment(home: str, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of git: no configuration but ours, and constant names and dates."""
    kept_names = ("GIT_EXEC_PATH", "GIT_TEMPLATE_DIR")
    inherited = {n: v for n, v in os.environ.items() if n in kept_names or not n.startswith("GIT_")}
    # GIT_CONFIG_COUNT, GIT_CONFIG_KEY_<n> and GIT_CONFIG_VALUE_<n> set configuration values that
    # override all files and are overridden by `git -c`. See
    # https://git-scm.com/docs/git-config#_environment
    settings = {"GIT_CONFIG_COUNT": str(len(_SETTINGS))}
    for number, (name, value) in enumerate(_SETTINGS.items()):
        settings[f"GIT_CONFIG_KEY_{number}"] = name
        settings[f"GIT_CONFIG_VALUE_{number}"] = value
    return {
        **inherited,
        **settings,
        **variables,
        "HOME": home,
        "XDG_CONFIG_HOME": home,
        "LC_ALL": "C",
        "LANGUAGE": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        # Constant, so that the same tree always gives the same commit.
        "GIT_AUTHOR_NAME": _COMMITTER,
        "GIT_AUTHOR_EMAIL": "sandbox@localhost",
        "GIT_AUTHOR_DATE": "@0 +0000",
        "GIT_COMMITTER_NAME": _COMMITTER,
        "GIT_COMMITTER_EMAIL": "sandbox@localhost",
        "GIT_COMMITTER_DATE": "@0 +0000",
    }


def _text(output: bytes) -> str:
    return output.decode("ascii", "replace").strip()
