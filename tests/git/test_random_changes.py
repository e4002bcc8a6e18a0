"""Property tests: any files in a sandbox give the same tree on the host."""

# Paths that are bytes have no Path.
# ruff: noqa: PTH108, PTH112, PTH113, PTH114, PTH118

import fnmatch
import os
import re
import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from resolver.git.workspace import Workspace
from resolver.sandbox.setup_files import PATTERNS
from tests.git.scenario import (
    Scenario,
    commit_all,
    enter_sandbox,
    link,
    make_repository,
    plain_git,
    write,
)

# Generated files stay out of a change on purpose. hypothesis also draws from the constants of the
# code under test, and so sometimes a name of the list itself.
_GENERATED = re.compile("|".join(fnmatch.translate(os.fsdecode(p)) for p in PATTERNS))
NAMES = st.one_of(
    st.sampled_from([b"a", b"b", b"A", b"-x", b"c d", b"e\nf", b".gitignore", b".gitattributes"]),
    st.binary(min_size=1, max_size=8),
).filter(lambda n: not set(n) & {0, 47} and n not in (b".", b"..") and n.lower() != b".git")
NAMES = NAMES.filter(lambda name: not _GENERATED.match(os.fsdecode(name)))
# A folder called .gitattributes is refused by the checks that GitHub makes as well.
PATHS = (
    st.lists(NAMES, min_size=1, max_size=3)
    .filter(lambda names: b".gitattributes" not in names[:-1])
    .map(b"/".join)
)
CONTENT = st.one_of(
    st.binary(max_size=200),
    st.sampled_from([b"", b"\n", b"x\r\ny\n", b"*\n", b"* text=auto\n", b"* text eol=crlf\n"]),
    st.lists(st.sampled_from([b"one", b"two\r", b"--- a/x", b"+++", b"\xff"]), max_size=20).map(
        b"\n".join
    ),
)
ENTRY = st.one_of(
    st.tuples(st.just("file"), CONTENT, st.sampled_from([0o644, 0o755])),
    st.tuples(st.just("link"), st.binary(min_size=1, max_size=30).filter(lambda t: 0 not in t)),
)
FILES = st.dictionaries(PATHS, ENTRY, max_size=8)


def _put(root: Path, files: dict) -> None:  # type: ignore[type-arg]
    for path, (kind, *rest) in files.items():
        parts = path.split(b"/")
        above = [os.path.join(os.fsencode(root), *parts[:n]) for n in range(1, len(parts))]
        full = os.path.join(os.fsencode(root), path)
        if any(os.path.islink(p) or os.path.isfile(p) for p in above):
            continue
        if os.path.isdir(full) and not os.path.islink(full):
            shutil.rmtree(full)
        if kind == "file":
            write(root, path, *rest)
        else:
            link(root, path, *rest)


@settings(
    # One example takes a fifth of a second: shrinking would take minutes.
    max_examples=max(1, settings.default.max_examples // 2),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)
@given(base=FILES, change=FILES, deleted=st.sets(st.integers(0, 7)))
def test_any_tree_arrives_unchanged(base: dict, change: dict, deleted: set[int]) -> None:  # type: ignore[type-arg]
    with tempfile.TemporaryDirectory() as place:
        source = make_repository(Path(place) / "source", {})
        _put(source, base)
        commit_all(source)
        workspace = Workspace.clone(str(source), Path(place) / "clone")
        scenario = Scenario(source, workspace, *enter_sandbox(workspace, Path(place)))
        for number, path in enumerate(base):
            full = os.path.join(os.fsencode(scenario.root), path)
            if number in deleted and os.path.lexists(full) and not os.path.isdir(full):
                os.unlink(full)
        _put(scenario.root, change)
        got = scenario.publish()
        if not any(b".gitattributes" in p for p in (*base, *change)):
            assert got == scenario.expected_tree()
        again = Path(place) / "again"
        plain_git(source, "worktree", "add", "-q", str(again), "agent/change")
        assert plain_git(again, "status", "--porcelain") == ""
