"""Chooses the environment in which a change is executed that alters dependencies or the set-up.

The environment that was prepared at the base commit doesn't fit such a change. The set-up is then
run again, on the files of the change. Nothing outside of the sandbox is made from these files: no
image is built from them, and none is started that only they name.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import PurePosixPath

from resolver.config.image_reference import DEVCONTAINER, DOCKERFILE
from resolver.errors import ResolverError
from resolver.models.verification import UnpreparedEnvironment
from resolver.runtime.environment.dependencies import dependency_kind
from resolver.runtime.environment.environment import Environment
from resolver.runtime.environment.images import requested_image
from resolver.runtime.environment.plan import (
    COPILOT,
    FILES,
    SCRIPTS,
    SETTING,
    Read,
    SetupPlan,
    find_changed_setup,
)

_SOURCES = frozenset({SETTING, *SCRIPTS, *COPILOT, *FILES})

_BUILDS = re.compile(
    r"\b(?:build(?:_\w+)?|compile|make|cmake|ninja|meson|tsc|webpack|rollup|esbuild|vite|maturin"
    r"|cython\w*|protoc|generate|codegen|collectstatic)\b"
)
"""Matches a set-up that builds something from the files of the repository."""


@dataclass(frozen=True)
class TreeEnvironment:
    """The environment of a tree.

    altered_by: the changed files that alter dependencies or the set-up, so that the set-up has to
        succeed on this tree.
    """

    environment: Environment
    altered_by: tuple[str, ...] = ()


def environment_of_change(
    environment: Environment, image: str, changed: Collection[str], before: Read, after: Read
) -> TreeEnvironment | UnpreparedEnvironment:
    """Return the environment for the files of a change, or why none can be prepared for it.

    environment: the one that was chosen for the base commit. It is returned if it fits.
    image: the setting `image`.
    changed: paths of the files that differ from the base commit.
    before, after: return a file at the base commit and with the change.
    """
    try:
        plan, altered_setup = _changed_setup(environment, changed, before, after)
        altered_image = _altered_image(image, changed, before, after) if environment.image else ()
    except ResolverError as error:
        paths = tuple(path for path in changed if path in _SOURCES)
        return UnpreparedEnvironment(paths=paths, cause="setup_unreadable", detail=error.what)
    kinds = {path: dependency_kind(path, before, after) for path in changed}
    installed = {path for path, kind in kinds.items() if kind == "installed"} | altered_setup
    resolved = {path for path, kind in kinds.items() if kind == "resolved"}
    is_built = bool(environment.image) and image.startswith(DOCKERFILE)
    paths = tuple(sorted({*installed, *resolved, *altered_image}))
    if altered_image or (installed and is_built):
        return UnpreparedEnvironment(paths=paths, cause="image")
    if installed and plan is None:
        return UnpreparedEnvironment(paths=paths, cause="no_setup")
    source = environment.source_image or environment.image
    if not paths and not (environment.is_prepared and _is_built(plan, before)):
        return TreeEnvironment(environment)
    return TreeEnvironment(Environment(source, plan), paths)


def _is_built(plan: SetupPlan | None, before: Read) -> bool:
    """Return True if the set-up may have built something from files of the repository.

    Tests would then look at what was built from the base commit.
    """
    return plan is not None and _BUILDS.search(_script(plan, before)) is not None


def _script(plan: SetupPlan, read: Read) -> str:
    """Return the text of the set-up, and of the file that it sources."""
    sourced = read(plan.source) if plan.source in SCRIPTS else None
    return f"{plan.script}\n{(sourced or b'').decode(errors='replace')}"


def _changed_setup(
    environment: Environment, changed: Collection[str], before: Read, after: Read
) -> tuple[SetupPlan | None, frozenset[str]]:
    """Return the set-up with the change, and the changed files that it consists of.

    Raises UsageError if it can't be read.
    """
    plan = environment.plan
    sources = _SOURCES.intersection(changed)
    altered = frozenset[str]()
    if sources:
        old, new = find_changed_setup(before, plan), find_changed_setup(after, plan)
        if old != new:
            plan, altered = new, sources
    if plan is None:
        return None, altered
    words = set(re.findall(r"[\w./-]+", f"{_script(plan, before)}\n{_script(plan, after)}"))
    named = {PurePosixPath(word).name for word in words}
    return plan, altered | {path for path in changed if PurePosixPath(path).name in named}


def _altered_image(
    image: str, changed: Collection[str], before: Read, after: Read
) -> Collection[str]:
    """Return the changed files by which the setting `image` means another image.

    Raises UsageError if one can't be read.
    """
    if image == DEVCONTAINER and requested_image(image, before) != requested_image(image, after):
        return set(FILES).intersection(changed)
    return [path for path in changed if image == f"{DOCKERFILE}{path}"]
