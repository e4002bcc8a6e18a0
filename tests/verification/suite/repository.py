"""A small repository, a change to it, and the verdict that must come out."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from resolver.models.verification import VerificationReason, VerificationVerdict
from resolver.verification.inline_tests import with_inline_tests
from resolver.models.test_files import is_test_file

Kind = Literal["fix", "untested fix", "useless test", "regression", "flaky", "cheat"]
"""What a change is: an honest fix with its test, one without a test, a fix whose test passes
without it too, a change that breaks something, one beside a flaky test, or one that only makes the
checks pass."""

Files = Mapping[str, str]


@dataclass(frozen=True)
class SuiteRepository:
    """A repository and a change.

    change: new text by path; None for a file that the change deletes.
    reason: the reason that is expected of a change that is not verified; "" for any.
    is_recorded: True if its runner is not installed everywhere, so that what its checks did was
        written down when they were executed.
    """

    name: str
    language: str
    kind: Kind
    base: Files
    change: Mapping[str, str | None]
    verdict: VerificationVerdict
    reason: VerificationReason = ""
    is_recorded: bool = False

    def __str__(self) -> str:
        return f"{self.language}: {self.name}"

    @property
    def trees(self) -> dict[str, Files]:
        """The files of each tree that checks are executed on, by its name."""
        tests = self.tests
        head = {**self.base, **self.change}
        found = {"base": self.base, "head": {p: t for p, t in head.items() if t is not None}}
        old = {path: text for path, text in self.base.items() if path not in self.renamed_tests}
        return {**found, "base_with_tests": {**old, **tests}} if tests else found

    @property
    def tests(self) -> Files:
        """The test files of the change, and the base's source files with the change's tests."""
        inline = {
            path: with_inline_tests(path, self.base[path], text)
            for path, text in self.change.items()
            if text is not None and path in self.base
        }
        tests = {path: text for path, text in self.change.items() if is_test_file(path)}
        return {path: text for path, text in {**inline, **tests}.items() if text is not None}

    @property
    def renamed_tests(self) -> dict[str, str]:
        """The new paths of the test files that the change renames."""
        return {
            old: new
            for old, gone in self.change.items()
            for new, text in self.change.items()
            if gone is None and text and new not in self.base and is_test_file(old)
            if SequenceMatcher(None, self.base[old], text).ratio() > 0.5
        }


def edit(files: Files, path: str, *pairs: tuple[str, str]) -> dict[str, str | None]:
    """Return the change of a file by replacements, each of which must apply."""
    text = files[path]
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new, 1)
    return {path: text}


def tree_id(files: Files) -> str:
    """Return a name of a tree's content."""
    return hashlib.sha256(json.dumps(sorted(files.items())).encode()).hexdigest()[:16]
