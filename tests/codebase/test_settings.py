"""Tests of the sources of settings, their precedence, and what is refused."""

import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.config.server_variables import ServerVariables, read_server_variables
from resolver.config.setting_messages import environment_warnings
from resolver.config.settings import EVENT_SETTINGS, Settings, load_settings
from resolver.config.sources import DeclaredSettings, repository_names, repository_settings
from resolver.errors import UsageError

MAX_SETTINGS = 40
SET_BY_REPOSITORY = {
    "max_iterations",
    "max_budget",
    "max_time",
    "image",
    "setup",
    "verify",
    "checks",
    "base_branch",
    "mcp",
    "condenser",
    "draft",
    "signed_commits",
}


def refused(environment: dict[str, str], repository: dict[str, object] | bytes) -> UsageError:
    with pytest.raises(UsageError) as caught:
        file = repository_settings(repository) if isinstance(repository, bytes) else repository
        load_settings({}, environment, file)
    return caught.value


def test_options_win_over_inputs_over_environment_over_repository_over_defaults() -> None:
    environment = {"INPUT_MAX-ITERATIONS": "20", "RESOLVER_MAX_ITERATIONS": "30"}
    repository = {"max_iterations": 40}
    assert load_settings({"max_iterations": 10}, environment, repository).max_iterations == 10
    assert load_settings({"max_iterations": None}, environment, repository).max_iterations == 20
    del environment["INPUT_MAX-ITERATIONS"]
    assert load_settings({}, environment, repository).max_iterations == 30
    assert load_settings({}, {}, repository).max_iterations == 40
    assert load_settings({}, {}, {}).max_iterations == 250


@pytest.mark.parametrize(
    ("environment", "name", "value"),
    [
        *(
            ({variable: "https://x.example"}, name, "https://x.example")
            for variable, name in (
                ("LLM_MODEL", "model"),
                ("LLM_BASE_URL", "base_url"),
                ("GITHUB_API_URL", "github_api_url"),
                ("GITHUB_SERVER_URL", "github_server_url"),
                ("GITHUB_GRAPHQL_URL", "github_graphql_url"),
                ("INPUT_MODEL", "model"),
                ("INPUT_LLM_MODEL", "model"),
                ("INPUT_LLM-BASE-URL", "base_url"),
                ("RESOLVER_IMAGE", "image"),
            )
        ),
        ({"INPUT_MODEL": " ", "LLM_MODEL": "m"}, "model", "m"),
        ({"INPUT_ALLOWED-USERS": "ada, bob\ncleo"}, "allowed_users", ("ada", "bob", "cleo")),
    ],
)
def test_a_variable_sets_a_setting(environment: dict[str, str], name: str, value: Any) -> None:
    assert getattr(load_settings({}, environment), name) == value


@pytest.mark.parametrize(
    "variable",
    ["LLM_API_KEY", "INPUT_LLM-API-KEY", "INPUT_LLM_API_KEY", "GITHUB_TOKEN", "INPUT_GITHUB-TOKEN"],
)
def test_a_secret_is_collected_and_never_shown(variable: str) -> None:
    settings = load_settings({}, {variable: "canary-123456"})
    assert settings.secrets == ("canary-123456",)
    assert "canary" not in repr(settings)
    assert "canary" not in settings.model_dump_json()


def test_settings_made_from_arguments_do_not_read_the_environment() -> None:
    """The library would read the variable with the name of the field."""

    class Declared(DeclaredSettings):
        path: str = "of the class"

    assert os.environ["PATH"] and Declared().path == "of the class"


def test_a_wrong_setting_does_not_prevent_loading_those_that_decide_where_to_report_it() -> None:
    wrong = {"INPUT_MAX-BUDGET": "five", "RESOLVER_MENTION": "@bot"}
    assert load_settings({}, wrong, only=EVENT_SETTINGS).mention == "@bot"
    assert "INPUT_MAX-BUDGET: must be a number" in refused(wrong, {}).what


def test_entries_of_a_mapping_come_from_the_first_source_that_has_them() -> None:
    environment = {
        "INPUT_MODEL-OPTIONS": "{temperature: 0}",
        "RESOLVER_MODEL_OPTIONS": "{temperature: 1, top_p: 0.5, dialect: tags}",
    }
    options = load_settings({}, environment).model_options
    assert (options.dialect, options.call_options) == ("tags", {"temperature": 0, "top_p": 0.5})


@pytest.mark.parametrize(
    ("environment", "repository", "says"),
    [
        ({"RESOLVER_MAX_BUDGET": "-1"}, {}, "RESOLVER_MAX_BUDGET: must be greater than 0"),
        ({"RESOLVER_MENTION": "two words"}, {}, "RESOLVER_MENTION: the mention is one word"),
        ({"RESOLVER_MAX_BUDGET": "inf"}, {}, "must be a finite number"),
        ({"RESOLVER_MAX_ITERATIONS": "1.5"}, {}, "must be a whole number"),
        ({"RESOLVER_VERIFY": "maybe"}, {}, "must be true or false"),
        ({"RESOLVER_RUNTIME": "podman"}, {}, "must be 'auto', 'docker', 'local' or 'remote'"),
        ({"RESOLVER_MCP": "{a: 3}"}, {}, "RESOLVER_MCP, a: must be a mapping"),
        ({"RESOLVER_MODEL_OPTIONS": "{timeout: 0}"}, {}, "RESOLVER_MODEL_OPTIONS, timeout: "),
        ({"RESOLVER_MODEL_OPTIONS": "{tools: []}"}, {}, "tools can't be set here"),
        ({"RESOLVER_MODEL_OPTIONS": "{my_key: x}"}, {}, "my_key can't be set here"),
        ({"RESOLVER_MODEL_OPTIONS": "{top_p: {a: 1}}"}, {}, "top_p is not a text"),
        ({"RESOLVER_MODEL_OPTIONS": "{"}, {}, "RESOLVER_MODEL_OPTIONS:1: not YAML"),
        ({"RESOLVER_SERVICES": "{a: {dialect: tags}}"}, {}, "dialect can't be set here"),
        ({}, b"\nmax_iterations: many\n", "resolver.yml:2, max_iterations: must be a whole"),
        (
            {},
            b"verify: no\nchecks: [{nam: x, command: x}]\n",
            "resolver.yml:2, checks, 0.name: is missing",
        ),
        ({}, {"condenser": "llm"}, ".github/resolver.yml, condenser: there is no condenser"),
        ({}, b"draft: true\nbase_url: http://evil\n", "resolver.yml:2: 'base_url' can't be set"),
        ({}, {"colour": "blue"}, "'colour' can't be set there"),
        ({}, {"max_bugdet": 3}, "'max_bugdet' can't be set there (did you mean max_budget?)"),
        ({}, b"draft: true\n  image: [\n", "resolver.yml:2: not YAML"),
        ({}, b"- a\n", "settings are `name: value` lines"),
    ],
)
def test_a_fault_is_said_with_its_place_and_in_words_of_ours(
    environment: dict[str, str], repository: dict[str, object] | bytes, says: str
) -> None:
    error = refused(environment, repository)
    assert says in error.what
    assert "Input" not in error.what and error.next_step


def test_all_faults_are_reported_at_once() -> None:
    error = refused({"RESOLVER_MAX_TIME": "0"}, {"max_bugdet": 3, "draft": "perhaps"})
    assert [fault.split(": ")[0] for fault in error.what.split("; ")] == [
        ".github/resolver.yml", "RESOLVER_MAX_TIME", ".github/resolver.yml, draft",
    ]  # fmt: skip
    assert error.next_step.startswith("a repository may set: ")


def test_an_unknown_variable_is_reported_with_the_most_similar_one() -> None:
    kinds = (Settings, ServerVariables)
    known = {f"RESOLVER_{name.upper()}": "1" for kind in kinds for name in kind.model_fields}
    wrong = ("RESOLVER_DATABASE", "RESOLVER_MAX_BUGDET", "RESOLVER_QQ", "LLM_MODLE")
    assert environment_warnings({**known, **dict.fromkeys(wrong, "1")}, kinds) == [
        "RESOLVER_DATABASE is not a setting and is ignored (did you mean RESOLVER_DATABASE_URL?)",
        "RESOLVER_MAX_BUGDET is not a setting and is ignored (did you mean RESOLVER_MAX_BUDGET?)",
        "RESOLVER_QQ is not a setting and is ignored",
    ]


def test_a_server_is_told_by_its_environment_alone() -> None:
    environment = {"GITHUB_WEBHOOK_SECRET": "canary-123456", "RESOLVER_DATA_DIR": "/data"}
    server = read_server_variables(environment)
    assert server.data_dir == "/data" and "canary" not in repr(server)
    with pytest.raises(UsageError, match="RESOLVER_PUBLIC_URL: "):
        read_server_variables({"RESOLVER_PUBLIC_URL": "xml"})


@pytest.mark.attack
def test_a_repository_sets_nothing_that_decides_where_a_secret_goes() -> None:
    """A repository sets an endpoint, a host or a token: only listed settings are accepted from
    it."""
    assert set(repository_names(Settings)) == SET_BY_REPOSITORY


@pytest.mark.attack
def test_a_repository_can_not_raise_a_limit_of_the_operator() -> None:
    """A repository raises a limit of the operator: the operator's holds."""
    environment = {"RESOLVER_MAX_BUDGET": "2"}
    assert load_settings({}, environment, {"max_budget": 50}).max_budget == 2


@pytest.mark.parametrize("content", [None, b"", b"# nothing\n"])
def test_a_missing_or_empty_file_sets_nothing(content: bytes | None) -> None:
    assert repository_settings(content) == {}


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_are_settings_or_a_usage_error(content: bytes) -> None:
    try:
        load_settings({}, {}, repository_settings(content))
    except UsageError as error:
        assert ".github/resolver.yml" in error.what


def test_the_settings_stay_few() -> None:
    count = len(Settings.model_fields)
    assert count <= MAX_SETTINGS, (
        f"there are {count} settings. Ask who would set the new one: a value that nobody sets is a "
        "constant beside its mechanism; an entry of a mapping, such as `model_options`, needs no "
        "setting of its own; or it replaces one that is set less often. If people need all of "
        "them, raise MAX_SETTINGS and say in the commit who sets the new one."
    )
