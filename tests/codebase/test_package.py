"""Tests of the package: what it contains, and that it is reproducible."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from resolver import __version__
from resolver.config.version import COMMIT_FILE, read_commit, version_text
from tests.parts.runs import git, make_checkout

ROOT = Path(__file__).parents[2]


def test_the_version_names_the_commit_of_a_checkout(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "checkout", {"resolver/a.py": "1\n"})
    commit = git(checkout, "rev-parse", "HEAD")
    assert read_commit(checkout / "resolver") == commit
    (checkout / "resolver/a.py").write_text("2\n")
    assert version_text(checkout / "resolver") == f"{__version__} ({commit[:12]}-dirty)"


def build(source: Path, output: Path, *targets: str) -> None:
    options = [word for target in targets for word in ("-t", target)]
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", *options, "-d", str(output)],
        cwd=source, env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"},
        check=True, capture_output=True,
    )  # fmt: skip


def test_a_source_distribution_builds_the_same_wheel(tmp_path: Path) -> None:
    tracked = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True, text=True, check=True,
    ).stdout.split("\0")  # fmt: skip
    source = tmp_path / "source"
    for name in filter(None, tracked):
        if (ROOT / name).is_file() and not name.startswith(("tests/", "docs/")):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    git(source, "init", "-q", "-b", "main")
    git(source, "add", "-A")
    git(source, "commit", "-q", "-m", "Begin")
    build(source, tmp_path / "dist", "sdist", "wheel")
    [wheel], [sdist] = (tmp_path / "dist").glob("*.whl"), (tmp_path / "dist").glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        commit = archive.read(f"resolver/{COMMIT_FILE}").decode().strip()
    assert re.fullmatch("[0-9a-f]{40}", commit)
    for folder in ("resolver", "prompts", "suite"):
        inside = "resolver" if folder == "resolver" else f"resolver/{folder}"
        files = {
            f"{inside}/{path.relative_to(ROOT / folder)}"
            for path in (ROOT / folder).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        assert files <= set(names)
    with tarfile.open(sdist) as tar:
        tar.extractall(tmp_path / "unpacked")
    [unpacked] = (tmp_path / "unpacked").iterdir()
    build(unpacked, tmp_path / "again", "wheel")
    [second] = (tmp_path / "again").glob("*.whl")
    assert second.read_bytes() == wheel.read_bytes()
