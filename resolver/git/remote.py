"""Reads a repository over the network, or from a local path: its refs, and objects by commit."""

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from resolver.errors import WorkspaceError
from resolver.git.git import Credential, HostGit, failure, fetching

OBJECT_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_NOT_THERE = re.compile(r"not our ref|unadvertised object|(?:no such|find) remote ref")

# What a server says that it can do, as git traces it: https://git-scm.com/docs/protocol-v2
_FETCH_FEATURES = re.compile(r"packet: +\S+< fetch=(.*)$", re.MULTILINE)

# Mistakes that old tools left in the history of real repositories. They are about names, dates and
# spelling of modes, and harmless to read; a change that comes from a sandbox may have none of them.
_TOLERATED = (
    "zeroPaddedFilemode", "zeroPaddedDate", "badFilemode", "badTimezone", "badDate",
    "badDateOverflow", "badEmail", "badName", "missingEmail", "missingNameBeforeEmail",
    "missingSpaceBeforeEmail", "missingSpaceBeforeDate", "nulInCommit", "nullSha1",
    "missingTaggerEntry", "badTagName", "multipleAuthors",
)  # fmt: skip


def check_url(url: str) -> str:
    """`url` itself. Raises WorkspaceError unless it is plain HTTP(S) without a credential."""
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise WorkspaceError(
            f"{_without_userinfo(url)!r} is not an HTTPS address",
            "give the address that starts with https://, or the path of a local checkout",
        )
    if "@" in parts.netloc:
        raise WorkspaceError(
            f"the address {_without_userinfo(url)} holds a user name or password",
            "give the plain address; the token is set apart from it",
        )
    if not re.fullmatch(r"[\x21-\x7e]+", url):
        raise WorkspaceError(f"the address {url!r} holds blanks or control characters")
    return url


def _without_userinfo(url: str) -> str:
    return re.sub(r"//[^/]*@", "//", url)


@dataclass(frozen=True)
class RefListing:
    """What a repository has. refs: commits by the full names of refs. default: the full name of the
    default branch, None where it has no commit. filters: whether commits can be fetched by their
    ids, and without their trees and files.
    """

    refs: dict[str, str]
    default: str | None
    filters: bool


def list_refs(url: str, names: Sequence[str], credential: Credential | None) -> RefListing:
    """HEAD and those refs of `names` that are there. Raises WorkspaceError."""
    args = ("ls-remote", "--symref", "--", url, "HEAD", *names)
    # Git fetches whole commits, with a warning at most, where a server can't filter: what the
    # server can do has to be known before, and git shows it nowhere but in its trace.
    with tempfile.NamedTemporaryFile(prefix="resolver-trace-") as trace:
        environment = {"GIT_TRACE_PACKET": trace.name}
        listed = HostGit().attempt(*args, environment=environment, credential=credential)
        features = _FETCH_FEATURES.search(Path(trace.name).read_text("utf-8", "replace"))
    if listed.status != 0:
        raise failure(args, listed, f"reading {url}")
    refs, default = _parse_listing(listed.stdout.decode("utf-8", "surrogateescape"))
    can = features[1].split() if features else []
    return RefListing(refs, default, {"shallow", "filter"} <= set(can))


def _parse_listing(listing: str) -> tuple[dict[str, str], str | None]:
    refs: dict[str, str] = {}
    default = None
    for line in listing.splitlines():
        value, _, name = line.partition("\t")
        if value.startswith("ref: ") and name == "HEAD":
            default = value.removeprefix("ref: ")
        elif OBJECT_ID.fullmatch(value):
            refs[name] = value
    if default is not None and "HEAD" in refs:
        refs.setdefault(default, refs["HEAD"])
    return refs, default if default in refs else None


def fetch(
    git: HostGit,
    url: str,
    refspecs: Sequence[str],
    depth: Sequence[str],
    credential: Credential | None,
) -> None:
    """Fetch into a clone of ours, every object checked. depth: git's options for it."""
    args = fetching(url, refspecs, "--update-shallow", *depth)
    tolerated = [(f"fetch.fsck.{name}", "ignore") for name in _TOLERATED]
    done = git.attempt(*args, settings=tolerated, credential=credential)
    if done.status == 0:
        return
    wanted = [spec.removeprefix("+").partition(":")[0] for spec in refspecs]
    commits = [name for name in wanted if OBJECT_ID.fullmatch(name)]
    if commits and _NOT_THERE.search(done.stderr):
        missing = next((name for name in commits if name in done.stderr), commits[-1])
        raise WorkspaceError(
            f"{url} has no commit {missing} any more",
            "its branch was forced to another history: start a new run",
        )
    raise failure(args, done, f"cloning {url}")
