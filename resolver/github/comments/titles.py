"""Writes the subjects of commits and the titles of pull requests in the repository's style.

The agent sees the repository's newest subjects and writes the title in their style. Only the types
of Conventional Commits are added to a title that lacks them, because checks often require them:
https://www.conventionalcommits.org
"""

import re
import textwrap
from collections.abc import Sequence

from resolver.github.text.markdown import shorten_text

MIN_SUBJECTS = 5
"""Minimum number of subjects that show whether a repository uses Conventional Commits."""

_CONVENTIONAL = re.compile(
    r"(?:feat|feature|fix|bugfix|hotfix|docs?|style|refactor|perf|tests?|build|ci|chore|revert|deps"
    r"|release|security|types|wip)(?:\([^()]{1,40}\))?!?: +(?=\S)",
    re.I,
)
_GENERATED_SUBJECT = re.compile(r"(?:Merge|Revert|Bump|Release|Initial commit|v?\d+\.\d+)\b")
_FEATURE = re.compile(r"(?:add|implement|support|introduce|allow|enable)\b", re.I)


def has_conventional_commits(subjects: Sequence[str]) -> bool:
    """Return True if most of the subjects that people wrote are Conventional Commits."""
    written = [subject for subject in subjects if not _GENERATED_SUBJECT.match(subject)]
    matching = [subject for subject in written if _CONVENTIONAL.match(subject.strip())]
    return len(written) >= MIN_SUBJECTS and 2 * len(matching) >= len(written)


def write_subject(subjects: Sequence[str], text: str, *, limit: int | None = None) -> str:
    """Return the text as the subject of a commit, on one line.

    It gets a type if the repository uses Conventional Commits and it has none, and is shortened to
    `limit` characters if there is a limit. `subjects` are those of the repository's newest commits.
    """
    text = " ".join(text.split())
    if has_conventional_commits(subjects) and not _CONVENTIONAL.match(text):
        word = text.split(" ", 1)[0]
        is_name = re.fullmatch(r"[A-Z][a-z]+[,:]?", word) is None
        first = text[:1] if is_name else text[:1].lower()
        text = f"{'feat' if _FEATURE.match(text) else 'fix'}: {first}{text[1:]}"
    if limit is None or len(text) <= limit:
        return text
    shortened = textwrap.shorten(text, limit, placeholder="…")
    return shortened if len(shortened) > limit // 2 else shorten_text(text, limit)
