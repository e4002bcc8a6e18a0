"""Finds the checks of Makefiles: the targets `test` and `check`, and what their recipes run.

Only plain rules and variables are read; conditionals, includes and functions are not evaluated.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from resolver.models.verification import ProjectCheck
from resolver.verification.check_candidates import CheckCandidate, command_keys
from resolver.verification.project_tree import ProjectTree, join_path
from resolver.verification.runner_commands import simple_commands

NAMES = ("GNUmakefile", "makefile", "Makefile")
"""Names of Makefiles in the order in which GNU make looks for them."""

TARGETS = ("test", "tests", "check")

_ASSIGNMENT = re.compile(
    r"(?:export[ \t]+)?([A-Za-z_][\w.-]{0,100})[ \t]*(?:[:?]{0,2}=)(.{0,2000})"
)
_REFERENCE = re.compile(r"\$[({]([A-Za-z_][\w.-]{0,100})[)}]")
_MAX_LINES = 20_000
_MAX_DEPTH = 4
_MAX_TARGETS = 50
"""Maximum number of targets that are followed from one target."""


@dataclass
class MakeRules:
    """The rules of a Makefile: prerequisites and recipe lines by target, and the variables."""

    prerequisites: dict[str, list[str]] = field(default_factory=dict)
    recipes: dict[str, list[str]] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=lambda: {"MAKE": "make"})

    def commands(self, target: str) -> list[str]:
        """Return the recipe lines of a target and of its prerequisites, with variables replaced."""
        found: list[str] = []
        seen: set[str] = set()
        self._collect(target, found, seen, 0)
        return found

    def _collect(self, target: str, found: list[str], seen: set[str], depth: int) -> None:
        if target in seen or depth > _MAX_DEPTH or len(seen) >= _MAX_TARGETS:
            return
        seen.add(target)
        for prerequisite in self.prerequisites.get(target, ()):
            # The target is itself a route to the tests, whatever its recipe runs.
            found += [f"make {prerequisite}"] if prerequisite in TARGETS else []
            self._collect(prerequisite, found, seen, depth + 1)
        for line in self.recipes.get(target, ()):
            command = self._replace(self._replace(line)).lstrip("@-+ \t")
            called = re.fullmatch(r"make[ \t]+([\w./-]{1,100})", command.strip())
            if called and called[1] in self.recipes:
                self._collect(called[1], found, seen, depth + 1)
            else:
                found.append(command)

    def _replace(self, line: str) -> str:
        return _REFERENCE.sub(lambda m: self.variables.get(m[1], m[0])[:500], line[:5_000])


def read_makefile(text: str) -> MakeRules:
    """Return the plain rules of a Makefile. Any text gives a result."""
    rules = MakeRules()
    targets: list[str] = []
    for line in text.replace("\\\n", " ").splitlines()[:_MAX_LINES]:
        if line.startswith("\t"):
            for target in targets:
                rules.recipes[target].append(line.strip())
            continue
        plain = line.partition("#")[0].strip()
        if not plain:
            continue
        targets = []
        if assigned := _ASSIGNMENT.fullmatch(plain):
            rules.variables.setdefault(assigned[1], assigned[2].strip())
        elif ":" in plain and not line.startswith(" "):
            targets = _read_rule(plain, rules)
    return rules


def _read_rule(line: str, rules: MakeRules) -> list[str]:
    named, _, rest = line.partition(":")
    wanted, _, recipe = rest.removeprefix(":").partition(";")
    targets = named.split()[:_MAX_TARGETS]
    if "=" in wanted:
        return []  # a variable of the target
    for target in targets:
        rules.prerequisites.setdefault(target, []).extend(wanted.replace("|", " ").split())
        rules.recipes.setdefault(target, []).extend([recipe.strip()] if recipe.strip() else [])
    return targets


def target_runner(tree: ProjectTree, folder: str, target: str) -> str:
    """Return the runner of a target if it can be instrumented by variables alone, else "".

    A target that starts the runner several times would write the same report each time.
    """
    names = tree.names.get(folder, frozenset())
    name = next((name for name in NAMES if name in names), "")
    recipe = read_makefile(tree.text(join_path(folder, name))).commands(target) if name else []
    runners = [simple.runner for simple in simple_commands("\n".join(recipe)) if simple.runner]
    return runners[0] if runners in (["pytest"], ["node"]) else ""


def find_make_checks(tree: ProjectTree) -> Iterator[CheckCandidate]:
    """Yield the targets of the Makefile at the root that test."""
    names = tree.names.get("", frozenset())
    name = next((name for name in NAMES if name in names), "")
    if not name:
        if {"configure", "Makefile.am"} <= names:
            check = ProjectCheck(
                name="make check", command="./configure && make check", origin="Makefile.am"
            )
            yield CheckCandidate(check, frozenset({"make:check:"}))
        return
    rules = read_makefile(tree.text(name))
    for target in TARGETS:
        if target in rules.recipes:
            check = ProjectCheck(
                name=f"make {target}", command=f"make {target}", origin=f"`{target}` in {name}"
            )
            runs = command_keys("\n".join(rules.commands(target)))
            own = frozenset({f"make:{target}:"})
            yield CheckCandidate(check, own, runs - own)
