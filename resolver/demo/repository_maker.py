"""Makes the demo's repository: the bundled files as two commits, the same ids on every machine."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

from git import Actor, Repo

HERE = Path(__file__).parent
"""Folder of the bundled files."""

ADA = Actor("Ada", "ada@example.org")
_STEPS = (
    ("Add money, bills and the ledger", datetime(2026, 1, 5, 9, tzinfo=UTC),
     ("README.md", "AGENTS.md", "CHANGES.md", ".gitignore", "tally", "tests/__init__.py",
      "tests/test_money.py")),
    ("Test that balances add up to zero", datetime(2026, 1, 6, 9, tzinfo=UTC),
     ("tests/test_ledger.py",)),
)  # fmt: skip


def make_repository(folder: Path) -> tuple[Path, Path]:
    """Create the git repository and the issue's file in the new `folder`; return their paths."""
    repository = folder / "repository"
    ignore = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(HERE / "repository", repository, ignore=ignore)
    issue = folder / "issue.md"
    shutil.copy(HERE / "issue.md", issue)
    for file in repository.rglob("*"):
        file.chmod(0o755 if file.is_dir() else 0o644)
    with Repo.init(repository, initial_branch="main") as repo:
        for message, at, paths in _STEPS:
            repo.index.add(_files(repository, paths))
            repo.index.commit(message, author=ADA, committer=ADA, author_date=at, commit_date=at)
    return repository, issue


def _files(repository: Path, paths: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    for path in (repository / p for p in paths):
        files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        found += [str(file.relative_to(repository)) for file in files]
    return found
