"""The set-up of a project that describes none: the usual installation in its language.

It is executed where the sandbox may reach the registry that it needs, which the operator decides.
"""

from collections.abc import Callable
from dataclasses import dataclass

from resolver.runtime.environment.plan import Read, SetupPlan
from resolver.runtime.environment.survey import survey

_FILES = (
    "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "requirements-dev.txt",
    "requirements_dev.txt", "requirements-test.txt", "dev-requirements.txt",
    "test-requirements.txt", "uv.lock", "poetry.lock", "package.json", "package-lock.json",
    "pnpm-lock.yaml", "yarn.lock", "go.mod", "Cargo.toml", "pom.xml", "mvnw",
)  # fmt: skip
_HOSTS = {
    "pip ": ("pypi.org", "files.pythonhosted.org"),
    "npm ": ("registry.npmjs.org",),
    "pnpm ": ("registry.npmjs.org",),
    "yarn ": ("registry.yarnpkg.com",),
    "go ": ("proxy.golang.org", "sum.golang.org"),
    "cargo ": ("index.crates.io", "static.crates.io"),
    "mvn": ("repo.maven.apache.org",),
}
"""The hosts that an installation needs, by a part of its commands."""


@dataclass(frozen=True)
class StandardSetup:
    """The usual installation of a project. missing: hosts that it needs and can't reach."""

    plan: SetupPlan
    missing: tuple[str, ...] = ()


def find_standard_setup(read: Read, is_reachable: Callable[[str], bool]) -> StandardSetup | None:
    """Return the usual installation of the project at the root; None if there is none to be made.

    is_reachable: returns True if the sandbox may reach a host.
    """
    names = {name for name in _FILES if read(name) is not None}
    script = survey(names, read).setup
    hosts = {host for part, needed in _HOSTS.items() if part in f"{script} " for host in needed}
    if not hosts:
        return None
    source = next(name for name in _FILES if name in names)
    missing = tuple(sorted(host for host in hosts if not is_reachable(host)))
    return StandardSetup(SetupPlan(source, script, is_standard=True), missing)
