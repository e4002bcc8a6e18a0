"""Tests that the hunk of an edit is a patch that gives exactly the new file."""

import subprocess
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resolver.sandbox.textfile import find_positions, hunk, split_lines

texts = st.lists(st.sampled_from(["a", "b", "", "\f", "x\r"]), max_size=14).flatmap(
    lambda lines: st.sampled_from(["\n".join(lines), "\n".join([*lines, ""])])
)


@settings(suppress_health_check=list(HealthCheck))
@given(texts, texts)
def test_git_applies_the_hunk(tmp_path: Path, old: str, new: str) -> None:
    change = hunk(old, new, "f")
    if old == new:
        assert change.diff == ""
        return
    (tmp_path / "f").write_bytes(old.encode())
    apply = ["git", "apply", "--unidiff-zero", "--whitespace=nowarn", "-"]
    subprocess.run(apply, cwd=tmp_path, input=change.diff.encode(), check=True)
    assert (tmp_path / "f").read_bytes() == new.encode()


@given(texts, texts)
def test_the_changed_lines_are_in_the_new_text(old: str, new: str) -> None:
    change = hunk(old, new, "f")
    assert 1 <= change.first <= len(split_lines(new)) + 1
    assert change.first - 1 <= change.last <= len(split_lines(new))


@given(st.text("ab\n", max_size=30), st.text("ab\n", min_size=1, max_size=4))
def test_line_ends_of_both_kinds_are_found(text: str, wanted: str) -> None:
    plain = [start for start in range(len(text)) if text.startswith(wanted, start)]
    assert [start for start, _ in find_positions(text, wanted)] == plain
    found = find_positions(text.replace("\n", "\r\n"), wanted)
    assert len(found) >= len(plain)
