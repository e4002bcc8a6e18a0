"""Gives the tests of a renamed file the names at the base commit that they have with the change.

A runner names a test by its file, its module or its class. All of them change with the file's
path, so that without this each test of a moved file would be missing and another one be new.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from resolver.models.verification import CaseResult, CheckExecution

_ENDS = (".", ":", "$", "[", " ")
"""Characters that may follow the name of a module or a class in the id of a test."""


@dataclass(frozen=True)
class RenamedTestFiles:
    """The test files that a change renames. files: new path by old path."""

    files: Mapping[str, str] = field(default_factory=dict)
    _old_ids: dict[str, str] = field(default_factory=dict)

    def as_with_change(self, execution: CheckExecution) -> CheckExecution:
        """Return an execution at the base commit with the names that its tests have now."""
        if not self.files:
            return execution
        cases = tuple(map(self._renamed, execution.cases))
        return execution.model_copy(update={"cases": cases})

    def id_at_base(self, test: str) -> str:
        """Return the id that a test of an execution had before it was renamed."""
        return self._old_ids.get(test, test)

    def _renamed(self, case: CaseResult) -> CaseResult:
        path = case.file or case.id.partition("::")[0]
        new = self.files.get(path)
        name = _by_file(case.id, path, new) if new else self._by_module(case.id)
        if name == case.id:
            return case
        self._old_ids[name] = case.id
        return case.model_copy(update={"id": name, "file": self.files.get(case.file, case.file)})

    def _by_module(self, test: str) -> str:
        """Return the id of a test whose report says only which module or class it is in."""
        for old, new in self.files.items():
            before, after = _module(old), _module(new)
            for start in range(len(before)):
                name = ".".join(before[start:])
                if before[:start] != after[:start]:
                    break
                if test == name or test.startswith(tuple(name + end for end in _ENDS)):
                    return ".".join(after[start:]) + test[len(name) :]
        return test


def _by_file(test: str, old: str, new: str) -> str:
    """Return the id of a test of the file `old`, however it is written in the id."""
    for before, after in zip(_forms(old), _forms(new), strict=True):
        if before in test:
            return test.replace(before, after, 1)
    return test


def _forms(path: str) -> tuple[str, str, str]:
    """Return how ids write a file: as a path, as a dotted module, by its own name alone."""
    module = _module(path)
    return path, ".".join(module), module[-1]


def _module(path: str) -> tuple[str, ...]:
    return PurePosixPath(path).with_suffix("").parts
