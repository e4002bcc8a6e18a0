"""The usual installation of a project that describes no set-up."""

import pytest

from resolver.config.allowed_hosts import AllowList
from resolver.runtime.environment.plan import SetupPlan
from resolver.runtime.environment.standard import StandardSetup, find_standard_setup

EXTRAS = '[project]\nname = "x"\n[project.optional-dependencies]\ntest = ["pytest"]\n'
GROUPS = '[project]\nname = "x"\n[dependency-groups]\ntest = ["pytest"]\n'


def find(files: dict[str, str], *allowed: str) -> StandardSetup | None:
    rules = AllowList.parse(allowed)

    def is_reachable(host: str) -> bool:
        try:
            return bool(rules.find(host, 443))
        except ValueError:
            return False

    return find_standard_setup(
        lambda path: files[path].encode() if path in files else None, is_reachable
    )


@pytest.mark.parametrize(
    ("files", "script"),
    [
        ({"pyproject.toml": GROUPS}, "pip install -e . && pip install --group test"),
        ({"pyproject.toml": "[project]\n[tool.pytest.ini_options]\n"},
         "pip install -e . && pip install pytest"),
        ({"setup.py": "", "requirements-dev.txt": "pytest"},
         "pip install -r requirements-dev.txt && pip install -e ."),
        ({"package.json": "{}", "pnpm-lock.yaml": ""},
         "corepack enable && pnpm install --frozen-lockfile"),
    ],
)  # fmt: skip
def test_a_project_has_its_usual_installation(files: dict[str, str], script: str) -> None:
    source = next(iter(files))
    plan = SetupPlan(source, script, is_standard=True)
    assert find(files, "packages") == StandardSetup(plan)


def test_it_is_named_with_the_hosts_that_the_sandbox_cannot_reach() -> None:
    files = {"pyproject.toml": EXTRAS}
    for allowed in ((), ("github",), ("pypi.org",)):
        found = find(files, *allowed)
        assert found is not None
        assert "files.pythonhosted.org" in found.missing
    mirror = find({"package.json": "{}"}, "registry.npmjs.org")
    assert mirror is not None and mirror.missing == ()


@pytest.mark.parametrize("files", [{}, {"README.md": ""}, {"setup.cfg": ""}])
def test_without_something_to_install_there_is_none(files: dict[str, str]) -> None:
    found = find(files, "packages")
    assert found is None or found.plan.script == "pip install -e ."
