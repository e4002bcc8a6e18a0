"""The environment of a change that alters dependencies or the set-up."""

from collections.abc import Mapping

import pytest

from resolver.models.verification import UnpreparedEnvironment
from resolver.runtime.environment.changed_environment import (
    TreeEnvironment,
    environment_of_change,
)
from resolver.runtime.environment.dependencies import dependency_kind
from resolver.runtime.environment.environment import Environment
from resolver.runtime.environment.plan import SetupPlan, find_setup

SCRIPT = ".agents/setup.sh"
PROJECT = '[project]\nname = "bill"\nversion = "1"\ndependencies = ["a"]\n[tool.ruff]\nfix = true\n'
BASE = {
    SCRIPT: "./tools/fetch.sh\n",
    "requirements.txt": "a==1\n",
    "bill.py": "",
    "tools/fetch.sh": "",
    "Dockerfile": "FROM python:3.12\nRUN apt-get update\n",
}
PREPARED = Environment("kept", SetupPlan(SCRIPT, f". ./{SCRIPT}"), "key", "owner", True, "python")


def choose(
    change: Mapping[str, str | None],
    environment: Environment = PREPARED,
    image: str = "python",
    base: Mapping[str, str] = BASE,
) -> TreeEnvironment | UnpreparedEnvironment:
    def before(path: str) -> bytes | None:
        return base[path].encode() if path in base else None

    def after(path: str) -> bytes | None:
        text = {**base, **change}.get(path)
        return None if text is None else text.encode()

    return environment_of_change(environment, image, change, before, after)


@pytest.mark.parametrize(
    "path", ["requirements.txt", SCRIPT, "tools/fetch.sh", "go.mod", "tests/uv.lock"]
)
def test_the_set_up_runs_again_from_the_image_it_began_with(path: str) -> None:
    found = choose({path: "changed\n"})
    assert found == TreeEnvironment(Environment("python", PREPARED.plan), (path,))


@pytest.mark.parametrize("path", ["bill.py", "docs/requirements.txt", "tests/fixtures/go.mod"])
def test_another_change_shares_the_environment_of_the_base_commit(path: str) -> None:
    assert choose({path: "changed\n"}) == TreeEnvironment(PREPARED)


def test_what_a_set_up_builds_is_built_from_the_change() -> None:
    base = {**BASE, SCRIPT: "npm ci && npm run build\n"}
    rebuilt = TreeEnvironment(Environment("python", PREPARED.plan))
    assert choose({"src/bill.ts": "changed\n"}, base=base) == rebuilt
    # Where no environment is kept, the set-up runs on each tree anyway.
    fresh = Environment("python", PREPARED.plan)
    assert choose({"src/bill.ts": "changed\n"}, fresh, base=base) == TreeEnvironment(fresh)


def test_without_a_set_up_installed_dependencies_do_not_fit_the_change() -> None:
    base = {name: text for name, text in BASE.items() if name != SCRIPT}
    without = Environment("python")
    found = choose({"requirements.txt": "a==2\n"}, without, base=base)
    assert found == UnpreparedEnvironment(paths=("requirements.txt",), cause="no_setup")
    # `go test` reads the file itself, and fails if it can't get what it names.
    resolved = choose({"go.mod": "module b\n"}, without, base=base)
    assert resolved == TreeEnvironment(without, ("go.mod",))
    # A set-up that the change brings is the one that fits it.
    added = choose({SCRIPT: "pip install a\n"}, without, base=base)
    assert isinstance(added, TreeEnvironment)
    assert added.environment.plan == find_setup(lambda path: b"x" if path == SCRIPT else None)


def test_no_image_is_made_from_what_a_change_says() -> None:
    built, setting = Environment("built", PREPARED.plan), "dockerfile:Dockerfile"
    for changed in ({"Dockerfile": "FROM python:3.13\n"}, {"requirements.txt": "a==2\n"}):
        expected = UnpreparedEnvironment(paths=tuple(changed), cause="image")
        assert choose(changed, built, setting) == expected
    # A Dockerfile that the sandbox is not made from alters nothing.
    assert choose({"Dockerfile": "FROM scratch\n"}) == TreeEnvironment(PREPARED)
    container = {**BASE, ".devcontainer.json": '{"image": "python:3.12"}'}
    other = {".devcontainer.json": '{"image": "evil:1"}'}
    named = choose(other, Environment("python:3.12"), "devcontainer", container)
    assert named == UnpreparedEnvironment(paths=(".devcontainer.json",), cause="image")


def test_a_set_up_that_the_change_makes_unreadable_is_said() -> None:
    base = {".devcontainer.json": '{"postCreateCommand": "pip install a"}'}
    environment = Environment("python", SetupPlan(".devcontainer.json", "pip install a"))
    found = choose({".devcontainer.json": "{"}, environment, base=base)
    assert isinstance(found, UnpreparedEnvironment)
    assert found.cause == "setup_unreadable"
    assert ".devcontainer.json" in found.detail


def test_the_set_up_of_the_operator_is_not_replaced() -> None:
    own = Environment("python", SetupPlan("RESOLVER_SETUP", "pip install .", by_operator=True))
    found = choose({SCRIPT: "true\n"}, own)
    assert found == TreeEnvironment(own)


@pytest.mark.parametrize(
    ("path", "old", "new", "kind"),
    [
        ("pyproject.toml", PROJECT, PROJECT.replace('"1"', '"2"'), None),
        ("pyproject.toml", PROJECT, PROJECT.replace("true", "false"), None),
        ("pyproject.toml", PROJECT, PROJECT.replace('["a"]', '["b"]'), "installed"),
        ("pyproject.toml", PROJECT, PROJECT + "[dependency-groups]\ndev = ['b']\n", "installed"),
        ("pyproject.toml", PROJECT, "[", "installed"),
        ("package.json", '{"version": "1"}', '{"version": "2", "scripts": {"test": "x"}}', None),
        ("web/package.json", "{}", '{"devDependencies": {"jest": "1"}}', "installed"),
        ("package.json", "{}", '{"scripts": {"postinstall": "x"}}', "installed"),
        ("setup.cfg", "", "[options]\ninstall_requires = a\n", "installed"),
        ("Cargo.toml", "", "[dependencies]\nserde = '1'\n", "resolved"),
        ("requirements/dev.txt", "", "a\n", "installed"),
        ("dev-requirements.txt", "", "a\n", "installed"),
        ("notes.txt", "", "a\n", None),
    ],
)
def test_only_what_an_installation_depends_on_alters_the_environment(
    path: str, old: str, new: str, kind: str | None
) -> None:
    assert dependency_kind(path, lambda _: old.encode(), lambda _: new.encode()) == kind
