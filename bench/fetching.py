"""Bytes that a clone takes over HTTP, beside `git clone --depth=1` and `--depth=50` of the same.

    python bench/fetching.py [NAMES...]

The repositories are made here, in the shape of real ones: generated modules, changed a few lines at
a time on branches that are merged later. They are the same on each machine. What is counted are the
bytes of the server's answers.
"""

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from resolver.git.history import first_parents
from resolver.git.workspace import Workspace
from tests.parts.git_http import git_http_app, token_gate
from tests.parts.wsgi import serve

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


@dataclass(frozen=True)
class Shape:
    """files, kilobytes: of the tree, about. steps: first-parent commits. merged: share of them that
    merge a branch. commits: most of one branch. age: by how many first-parent commits a branch is
    older than its merge, on average. ancient: share of branches that start ten times as far back.
    """

    files: int
    kilobytes: int
    steps: int
    merged: float
    commits: int
    age: int
    ancient: float


Versions = dict[str, list[tuple[int, list[bytes]]]]
"""Contents of each file, by the first-parent commit that wrote them."""

SHAPES = {
    "click": Shape(150, 1_500, 1_200, 0.6, 3, 4, 0.02),
    "pytest": Shape(600, 6_000, 4_000, 0.8, 4, 8, 0.05),
    "sympy": Shape(1_900, 30_000, 8_000, 0.9, 6, 30, 0.1),
    "git": Shape(4_600, 45_000, 9_000, 0.95, 5, 60, 0.25),
}


def main() -> None:
    print(
        "| shape of | commits | `--depth=1`, MB | `--depth=50`, MB | ours, MB | ours / depth 1 "
        "| first-parent commits | commits | requests | seconds |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name in sys.argv[1:] or SHAPES:
        with tempfile.TemporaryDirectory() as folder:
            print(measure(name, Path(folder)), flush=True)


def measure(name: str, place: Path) -> str:
    repository = place / "served/bench" / f"{name}.git"
    commits = make(SHAPES[name], repository)
    counts: list[int] = []
    app = git_http_app(place / "served", token_gate([]))

    def counting(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterator[bytes]:
        counts.append(0)
        here = len(counts) - 1
        body = app(environ, start_response)
        try:
            for chunk in body:
                counts[here] += len(chunk)
                yield chunk
        finally:
            if hasattr(body, "close"):
                body.close()

    with serve(counting) as address:
        url = f"{address.url}/bench/{name}.git"

        def plain(depth: int) -> int:
            counts.clear()
            target = str(place / f"plain-{depth}")
            run("clone", "--quiet", "--bare", f"--depth={depth}", url, target)
            return sum(counts)

        one, fifty = plain(1), plain(50)
        counts.clear()
        started = time.monotonic()
        workspace = Workspace.clone(url, place / "ours", depth=50)
        seconds, ours, requests = time.monotonic() - started, sum(counts), len(counts)
    chain = len(first_parents(workspace.git, workspace.base, 1_000))
    seen = workspace.git.text("rev-list", "--count", workspace.base)
    return (
        f"| {name} | {commits:,} | {one / 1e6:.2f} | {fifty / 1e6:.2f} | {ours / 1e6:.2f} "
        f"| {ours / one:.2f} | {chain} | {seen} | {requests} | {seconds:.1f} |"
    )


def make(shape: Shape, repository: Path) -> int:
    """Make the bare repository, and return how many commits it has."""
    run("init", "--quiet", "--bare", "--initial-branch=main", str(repository))
    stream = repository / "stream"
    with open(stream, "wb") as file:
        for part in history(shape):
            file.write(part)
    with open(stream, "rb") as file:
        command = ["git", f"--git-dir={repository}", "fast-import", "--quiet", "--depth=50"]
        subprocess.run(command, stdin=file, check=True)
    stream.unlink()
    run(f"--git-dir={repository}", "repack", "-adfq", "--window=10", "--depth=50")
    done = run(f"--git-dir={repository}", "rev-list", "--count", "main")
    return int(done)


def history(shape: Shape) -> Iterator[bytes]:
    """A stream for `git fast-import`: first-parent commits of which most merge a branch."""
    chance = random.Random(7)
    versions = {name: [(0, lines)] for name, lines in sources(shape).items()}
    mark = 1
    files = b"".join(write(name, found[0][1]) for name, found in versions.items())
    yield commit(mark, "Start", 0, [], files)
    marks = [mark]
    for step in range(1, shape.steps):
        at = 1_600_000_000 + step * 7_200
        parents = [marks[-1]]
        if chance.random() < shape.merged:
            age = int(chance.expovariate(1 / shape.age)) + 1
            age *= 10 if chance.random() < shape.ancient else 1
            start = max(0, step - 1 - age)
            tip = marks[start]
            changed: dict[str, list[bytes]] = {}
            for number in range(chance.randint(1, shape.commits)):
                own = edits(chance, versions, start, changed)
                changed |= own
                mark += 1
                when = at - (age * 7_200) // 2 + number * 60
                files = b"".join(write(name, lines) for name, lines in own.items())
                yield commit(mark, message(chance), when, [tip], files)
                tip = mark
            parents.append(tip)
            # Near enough to a merge: what the branch wrote, or an edit on top of what is there.
            merged = {
                name: lines if chance.random() < 0.7 else edit(chance, versions[name][-1][1])
                for name, lines in changed.items()
            }
        else:
            merged = edits(chance, versions, step, {})
        mark += 1
        files = b"".join(write(name, lines) for name, lines in merged.items())
        yield commit(mark, message(chance), at, parents, files)
        marks.append(mark)
        for name, lines in merged.items():
            versions[name].append((step, lines))


def sources(shape: Shape) -> dict[str, list[bytes]]:
    """Return the lines of each file: about as compressible as Python code, the same everywhere."""
    chance = random.Random(3)
    vocabulary = ["".join(chance.choices(SYLLABLES, k=chance.randint(2, 4))) for _ in range(6_000)]
    average = shape.kilobytes * 1_000 // shape.files
    return {
        f"package{number % 20}/module{number}.py": module(
            chance, vocabulary, chance.randint(average // 10, average)
        )
        for number in range(shape.files)
    }


def module(chance: random.Random, vocabulary: list[str], size: int) -> list[bytes]:
    """Return lines of statements, most of them with the few names that the file uses often."""
    own = chance.sample(vocabulary, 60)
    lines: list[bytes] = []
    while size > 0:
        names = [
            own[int(len(own) * chance.random() ** 2)]
            if chance.random() < 0.7
            else chance.choice(vocabulary)
            for _ in range(5)
        ]
        indentation = "    " * chance.randint(0, 3)
        lines.append((indentation + chance.choice(STATEMENTS).format(*names)).encode())
        size -= len(lines[-1]) + 1
    return lines


def edits(
    chance: random.Random, versions: Versions, step: int, own: dict[str, list[bytes]]
) -> dict[str, list[bytes]]:
    """A few lines of one to three files as they were at a step, most often of those that are
    changed often."""
    names = list(versions)
    changed = {}
    for _ in range(chance.choice((1, 1, 2, 2, 3))):
        name = names[int(len(names) * chance.random() ** 2.5)]
        then = next(lines for at, lines in reversed(versions[name]) if at <= step)
        changed[name] = edit(chance, own.get(name, then))
    return changed


def edit(chance: random.Random, lines: list[bytes]) -> list[bytes]:
    lines = list(lines)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(lines) + 1)
        new = b"    value_%d = compute(%d, %r)" % (
            chance.randrange(10**6), chance.randrange(10**4), message(chance).encode(),
        )  # fmt: skip
        lines[at : at + chance.randint(0, 2)] = [new] * chance.randint(0, 1) + [new + b"  # and"]
    return lines


STATEMENTS = (
    "def {0}(self, {1}, {2}=None):", "class {0}({1}):", "if {0} is None and not {1}:",
    "for {0}, {1} in {2}.items():", "return {0}", "return {0}.{1}({2})", "{0} = {1}",
    "{0} = {1}.{2}({3}, {4})", "self._{0} = {0}", "raise ValueError(f'{{{0}}} is not a {1}')",
    "assert {0} == [{1}, {2}]", "# The {0} of a {1} is the {2} that was {3} by the {4}.",
    "from {0}.{1} import {2}, {3}", "", "", "", "try:", "else:", "with {0}({1}) as {2}:",
    "# Return the {0} of {1}, or the {2} if there is no {3}.",
)  # fmt: skip

SYLLABLES = [first + second for first in "bcdfglmnprst" for second in "aeiou"]

WORDS = (
    "parser", "option", "value", "default", "string", "fix", "handle", "when", "missing", "raise",
    "error", "test", "docs", "type", "return", "context", "command", "group", "prompt", "release",
)  # fmt: skip


def message(chance: random.Random) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(chance.randint(4, 30)))


def write(name: str, lines: list[bytes]) -> bytes:
    data = b"\n".join(lines) + b"\n"
    return b"M 100644 inline %s\ndata %d\n%s\n" % (name.encode(), len(data), data)


def commit(mark: int, text: str, when: int, parents: list[int], files: bytes) -> bytes:
    head = b"commit refs/heads/main\nmark :%d\n" % mark
    who = f"committer Person {mark % 97} <person{mark % 97}@example.com> {max(when, 1)} +0000\n"
    body = b"%sdata %d\n%s\n" % (who.encode(), len(text), text.encode())
    links = [b"%s :%d\n" % (b"from" if not n else b"merge", p) for n, p in enumerate(parents)]
    return head + body + b"".join(links) + files + b"\n"


def run(*args: str) -> str:
    done = subprocess.run(["git", *args], check=True, capture_output=True, text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    main()
