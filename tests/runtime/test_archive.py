"""Tests of moving single files in and out, also with hostile streams."""

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.errors import SandboxError
from resolver.runtime.client import take_file, wrap_file


def packed(*members: tuple[tarfile.TarInfo, bytes]) -> Iterator[bytes]:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for member, content in members:
            tar.addfile(member, io.BytesIO(content))
    return iter([stream.getvalue()])


def a_file(name: str, content: bytes) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    return member, content


def a_special(kind: bytes, link: str = "") -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo("bundle")
    member.type, member.linkname = kind, link
    return member, b""


@given(content=st.binary(max_size=3000), cut=st.integers(1, 700))
def test_a_file_is_fetched_unchanged(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, cut: int
) -> None:
    out = tmp_path_factory.mktemp("out") / "file"
    parts = [content[i : i + cut] for i in range(0, len(content), cut)]
    stream = b"".join(wrap_file("name", iter(parts)))
    pieces = iter([stream[i : i + cut] for i in range(0, len(stream), cut)])
    take_file(pieces, out, max_bytes=3000)
    assert out.read_bytes() == content


@pytest.mark.parametrize(
    "member",
    [
        a_special(tarfile.SYMTYPE, "/etc/passwd"),
        a_special(tarfile.LNKTYPE, "/etc/passwd"),
        a_special(tarfile.DIRTYPE),
        a_special(tarfile.FIFOTYPE),
        a_special(tarfile.CHRTYPE),
        a_special(tarfile.GNUTYPE_SPARSE),
    ],
    ids=["symlink", "hardlink", "folder", "fifo", "device", "sparse"],
)
def test_anything_but_a_regular_file_is_refused(
    tmp_path: Path, member: tuple[tarfile.TarInfo, bytes]
) -> None:
    with pytest.raises(SandboxError):
        take_file(packed(member), tmp_path / "out", 1000)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("stream", "limit", "said"),
    [
        (b"".join(packed(a_file("a", b"1"), a_file("b", b"2"))), 1000, "more than one"),
        (b"".join(packed(a_file("a", b"x" * 11))), 10, "the limit is 10"),
        (b"".join(packed(a_file("a", b"x" * 5000)))[:2000], 10_000, "."),
    ],
    ids=["a second member", "over the limit", "truncated"],
)
def test_an_archive_of_anything_but_one_file_within_the_limit_is_refused(
    tmp_path: Path, stream: bytes, limit: int, said: str
) -> None:
    with pytest.raises(SandboxError, match=said):
        take_file(iter([stream]), tmp_path / "out", limit)
    assert not (tmp_path / "out").exists()


def test_an_existing_destination_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(SandboxError):
        take_file(packed(a_file("a", b"1")), tmp_path / "out", 1000)
    assert (tmp_path / "out").read_text() == "mine"


@given(noise=st.binary(max_size=4000))
def test_garbage_is_an_error_and_leaves_no_file(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes
) -> None:
    out = tmp_path_factory.mktemp("noise") / "file"
    with pytest.raises(SandboxError):
        take_file(iter([noise]), out, 10_000)
    assert not out.exists()


@given(flips=st.lists(st.tuples(st.integers(0, 511), st.integers(0, 255)), max_size=4))
def test_a_damaged_header_never_raises_another_error(
    tmp_path_factory: pytest.TempPathFactory, flips: list[tuple[int, int]]
) -> None:
    out = tmp_path_factory.mktemp("flip") / "file"
    data = bytearray(next(packed(a_file("a", b"hello"))))
    for place, value in flips:
        data[place] = value
    try:
        take_file(iter([bytes(data)]), out, 10_000)
    except SandboxError:
        assert not out.exists()
