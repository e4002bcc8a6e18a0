"""Property tests: any files in a sandbox give the same tree on the host."""

import fnmatch
import os
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from resolver.sandbox.setup_files import PATTERNS
from tests.git.scenario import commit_all, make_repository, open_scenario, plain_git
from tests.git.test_every_change import Content, put
from tests.git.trees import Link

FOLDERS = [b"", b"d/", b"d/-e f/", b"\xff\n/"]


def is_ordinary(name: bytes) -> bool:
    """Return True for a file that git takes, and that is not left out as generated."""
    return (
        not set(name) & {0, 47}
        and name.lower() not in (b".", b"..", b".git", b"d", b"-e f", b"\xff\n")
        and not any(fnmatch.fnmatchcase(os.fsdecode(name), os.fsdecode(p)) for p in PATTERNS)
    )


NAMES = st.one_of(
    st.sampled_from([b"a", b"A", b"-x", b"c d", b"e\nf", b".gitignore", b".gitattributes"]),
    st.binary(min_size=1, max_size=8),
).filter(is_ordinary)
TEXT = st.one_of(
    st.binary(max_size=200),
    st.sampled_from([b"", b"\n", b"x\r\ny\n", b"*\n", b"* text=auto\n", b"* text eol=crlf\n"]),
    st.lists(st.sampled_from([b"one", b"two\r", b"--- a/x", b"+++", b"\xff"])).map(b"\n".join),
)
CONTENT = st.one_of(
    TEXT,
    TEXT.map(lambda text: (0o755, text)),
    st.binary(min_size=1, max_size=30)
    .filter(lambda target: 0 not in target)
    .map(lambda target: Link(os.fsdecode(target))),
)
FILES = st.dictionaries(
    st.tuples(st.sampled_from(FOLDERS), NAMES).map(b"".join), CONTENT, max_size=8
)


@settings(
    # One example takes a fifth of a second: shrinking would take minutes.
    max_examples=max(1, settings.default.max_examples // 2),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)
@given(base=FILES, change=FILES, deleted=st.sets(st.integers(0, 7)))
def test_any_tree_arrives_unchanged(
    base: dict[bytes, Content], change: dict[bytes, Content], deleted: set[int]
) -> None:
    with tempfile.TemporaryDirectory() as place:
        source = make_repository(Path(place) / "source", {})
        for path, content in base.items():
            put(source, path, content)
        commit_all(source)
        scenario = open_scenario(source, Path(place))
        for number, path in enumerate(base):
            if number in deleted:
                put(scenario.root, path, None)
        for path, content in change.items():
            put(scenario.root, path, content)
        got = scenario.publish()
        if not any(b".gitattributes" in path for path in (*base, *change)):
            assert got == scenario.expected_tree()
        again = Path(place) / "again"
        plain_git(source, "worktree", "add", "-q", str(again), "agent/change")
        assert plain_git(again, "status", "--porcelain") == ""
