"""Lists the refs of a repository and fetches from it, over the network or from a local path.

Writes the commits without parents that refs of Resolver's own point to, such as the quota ledger.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from resolver.errors import WorkspaceError
from resolver.git.git import Credential, HostGit, fetch_arguments, git_failure

OBJECT_ID = re.compile(r"[0-9a-f]{40}")
_MISSING_COMMIT = re.compile(r"not our ref|unadvertised object|(?:no such|find) remote ref")

# Errors that old tools left in the history of real repositories. They concern names, dates and the
# format of modes, and are harmless to read. In a change from a sandbox, they are not tolerated.
# https://git-scm.com/docs/git-fsck#_fsck_messages
_TOLERATED_ERRORS = (
    "zeroPaddedFilemode", "zeroPaddedDate", "badFilemode", "badTimezone", "badDate",
    "badDateOverflow", "badEmail", "badName", "missingEmail", "missingNameBeforeEmail",
    "missingSpaceBeforeEmail", "missingSpaceBeforeDate", "nulInCommit", "nullSha1",
    "missingTaggerEntry", "badTagName", "multipleAuthors",
)  # fmt: skip


def check_url(url: str) -> str:
    """Return `url`. Raises WorkspaceError unless it is an HTTP(S) URL without a credential."""
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise WorkspaceError(
            f"{_without_userinfo(url)!r} is not an HTTPS address",
            "give the address that starts with https://, or the path of a local checkout",
        )
    if "@" in parts.netloc:
        raise WorkspaceError(
            f"the address {_without_userinfo(url)} contains a user name or password",
            "use the plain address; the token is configured separately",
        )
    if not re.fullmatch(r"[\x21-\x7e]+", url):
        raise WorkspaceError(f"the address {url!r} contains blanks or control characters")
    return url


def _without_userinfo(url: str) -> str:
    return re.sub(r"//[^/]*@", "//", url)


@dataclass(frozen=True)
class RefListing:
    """The refs of a repository.

    refs: ids of commits by the full names of refs.
    default: the full name of the default branch, None if it has no commit.
    """

    refs: dict[str, str]
    default: str | None


def list_refs(url: str, names: Sequence[str], credential: Credential | None) -> RefListing:
    """Return HEAD and those refs of `names` that exist. Raises WorkspaceError if that fails."""
    args = ("ls-remote", "--symref", "--", url, "HEAD", *names)
    result = HostGit().attempt(*args, credential=credential)
    if result.status != 0:
        raise git_failure(args, result, f"reading {url}")
    refs: dict[str, str] = {}
    default = None
    for line in result.stdout.decode("utf-8", "surrogateescape").splitlines():
        value, _, name = line.partition("\t")
        if value.startswith("ref: ") and name == "HEAD":
            default = value.removeprefix("ref: ")
        elif OBJECT_ID.fullmatch(value):
            refs[name] = value
    if default is not None and "HEAD" in refs:
        refs.setdefault(default, refs["HEAD"])
    return RefListing(refs, default if default in refs else None)


def fetch(
    git: HostGit,
    url: str,
    refspecs: Sequence[str],
    options: Sequence[str],
    credential: Credential | None,
) -> None:
    """Fetch into a clone of the host and check every object.

    options: git's options for the depth and filter of the fetch. Raises WorkspaceError if it fails.
    """
    # --update-shallow accepts refs from a source that is shallow itself, such as a cached clone or
    # a user's shallow checkout. https://git-scm.com/docs/git-fetch
    args = fetch_arguments(url, refspecs, "--update-shallow", *options)
    tolerated = [(f"fetch.fsck.{name}", "ignore") for name in _TOLERATED_ERRORS]
    result = git.attempt(*args, settings=tolerated, credential=credential)
    if result.status == 0:
        return
    requested = [spec.removeprefix("+").partition(":")[0] for spec in refspecs]
    commits = [name for name in requested if OBJECT_ID.fullmatch(name)]
    if commits and _MISSING_COMMIT.search(result.stderr):
        missing = next((name for name in commits if name in result.stderr), commits[-1])
        raise WorkspaceError(
            f"{url} has no commit {missing} any more",
            "its branch was force-pushed: start a new run",
        )
    raise git_failure(args, result, f"cloning {url}")


@dataclass(frozen=True)
class OrphanCommit:
    """A commit without parents, and the ref of the server that is to point to it.

    files: content by name. The names are plain: without folders, blanks or quotes.
    """

    ref: str
    message: str
    files: Mapping[str, bytes]


def write_orphans(git: HostGit, commits: Sequence[OrphanCommit]) -> tuple[str, ...]:
    """Write the commits to the repository and return their ids in the same order.

    One process writes all of their objects: https://git-scm.com/docs/git-fast-import
    """
    stream = b"".join(
        part for number, commit in enumerate(commits) for part in _commands(number, commit)
    )
    # An id that a ref of the temporary repository had before is of no interest to anybody.
    args = ("fast-import", "--quiet", "--force", "--date-format=now", "--done")
    output = git.run(*args, stdin=stream + b"done\n")
    return tuple(output.decode("ascii").split())


def _commands(number: int, commit: OrphanCommit) -> Iterator[bytes]:
    # Marks start at 1. The committer is required; the author is the same if none is given.
    yield f"commit refs/resolver/new-{number}\nmark :{number + 1}\n".encode()
    yield b"committer Resolver <resolver@localhost> now\n"
    yield _data(commit.message.encode())
    for name, content in sorted(commit.files.items()):
        yield f"M 100644 inline {name}\n".encode()
        yield _data(content)
    yield f"get-mark :{number + 1}\n".encode()


def _data(content: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(content), content)
