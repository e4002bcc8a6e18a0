"""Writes commits without parents that hold a few files, such as the quota ledger or a run's log."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from resolver.git.git import HostGit


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
