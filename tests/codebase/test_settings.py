"""Tests of the sources of settings, their precedence, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.config.declaration import setting_arguments, setting_parts
from resolver.config.setting_names import (
    environment_warnings,
)
from resolver.config.settings import (
    EVENT_SETTINGS,
    Settings,
    load_settings,
    repository_settings,
)
from resolver.errors import UsageError


def test_options_win_over_inputs_over_environment_over_repository_over_defaults() -> None:
    environment = {"INPUT_MAX-ITERATIONS": "20", "RESOLVER_MAX_ITERATIONS": "30"}
    repository = {"max_iterations": 40}
    assert load_settings({"max_iterations": 10}, environment, repository).max_iterations == 10
    assert load_settings({}, environment, repository).max_iterations == 20
    del environment["INPUT_MAX-ITERATIONS"]
    assert load_settings({}, environment, repository).max_iterations == 30
    assert load_settings({}, {}, repository).max_iterations == 40
    assert load_settings({}, {}, {}).max_iterations == 250


@pytest.mark.parametrize(
    ("variable", "field"),
    [
        ("LLM_MODEL", "model"),
        ("LLM_BASE_URL", "base_url"),
        ("GITHUB_API_URL", "github_api_url"),
        ("GITHUB_SERVER_URL", "github_server_url"),
        ("GITHUB_GRAPHQL_URL", "github_graphql_url"),
        ("INPUT_MODEL", "model"),
        ("INPUT_LLM_MODEL", "model"),
        ("INPUT_LLM-BASE-URL", "base_url"),
        ("RESOLVER_IMAGE", "image"),
    ],
)
def test_common_variable_names_work(variable: str, field: str) -> None:
    assert getattr(load_settings({}, {variable: "https://x.example"}), field) == "https://x.example"


@pytest.mark.parametrize(
    "variable",
    ["LLM_API_KEY", "INPUT_LLM-API-KEY", "INPUT_LLM_API_KEY", "GITHUB_TOKEN", "INPUT_GITHUB-TOKEN"],
)
def test_a_secret_is_collected_and_never_shown(variable: str) -> None:
    settings = load_settings({}, {variable: "canary-123456"})
    assert settings.secrets == ("canary-123456",)
    assert "canary" not in repr(settings)
    assert "canary" not in settings.model_dump_json()


def test_an_empty_input_counts_as_unset() -> None:
    assert load_settings({}, {"INPUT_MODEL": " ", "LLM_MODEL": "m"}).model == "m"
    assert load_settings({}, {"INPUT_IMAGE": ""}, {"image": "busybox:1"}).image == "busybox:1"


def test_a_wrong_setting_does_not_prevent_loading_those_that_decide_where_to_report_it() -> None:
    wrong = {"INPUT_MAX-BUDGET": "five", "RESOLVER_MENTION": "@bot"}
    assert load_settings({}, wrong, only=EVENT_SETTINGS).mention == "@bot"
    with pytest.raises(UsageError, match="INPUT_MAX-BUDGET: must be a number"):
        load_settings({}, wrong)


def test_a_list_is_split_at_commas_and_lines() -> None:
    settings = load_settings({}, {"INPUT_ALLOWED-USERS": "ada, bob\ncleo"})
    assert settings.allowed_users == ("ada", "bob", "cleo")


@pytest.mark.parametrize(
    ("environment", "repository", "says"),
    [
        ({"RESOLVER_MAX_BUDGET": "-1"}, {}, "RESOLVER_MAX_BUDGET"),
        ({"INPUT_MAX-TIME": "soon"}, {}, "INPUT_MAX-TIME"),
        ({"RESOLVER_MENTION": "two words"}, {}, "the mention is one word"),
        ({}, {"max_iterations": "many"}, ".github/resolver.yml, max_iterations"),
        ({}, {"base_url": "http://evil"}, "'base_url' can't be set there"),
        ({}, {"github_token": "x"}, "'github_token' can't be set there"),
        ({}, {"services": {"agent": "x"}}, "'services' can't be set there"),
        ({}, {"protected_paths": []}, "'protected_paths' can't be set there"),
        ({}, {"colour": "blue"}, "'colour' can't be set there"),
    ],
)
def test_a_wrong_value_names_its_source(
    environment: dict[str, str], repository: dict[str, object], says: str
) -> None:
    with pytest.raises(UsageError) as caught:
        load_settings({}, environment, repository)
    assert says in caught.value.what
    assert caught.value.next_step


@pytest.mark.parametrize(
    ("environment", "repository", "says"),
    [
        ({"RESOLVER_MAX_BUDGET": "abc"}, {}, "RESOLVER_MAX_BUDGET: must be a number"),
        ({"RESOLVER_MAX_BUDGET": "inf"}, {}, "must be a finite number"),
        ({"RESOLVER_MAX_ITERATIONS": "1.5"}, {}, "must be a whole number"),
        ({"RESOLVER_MAX_ITERATIONS": "0"}, {}, "must be at least 1"),
        ({"RESOLVER_MAX_TIME": "0"}, {}, "must be more than 0"),
        ({"RESOLVER_VERIFY": "maybe"}, {}, "must be true or false"),
        ({"RESOLVER_RUNTIME": "podman"}, {}, "must be 'auto', 'docker', 'local' or 'remote'"),
        ({"RESOLVER_MCP": "{a: 3}"}, {}, "must be a mapping"),
        ({}, {"checks": [{"nam": "x", "command": "x"}]}, "'nam' is not a property of a check"),
        ({}, {"pull_request_labels": "a"}, "pull_request_labels: must be a list"),
        ({}, {"pull_request_labels": [1]}, "pull_request_labels, 0: must be text"),
    ],
)
def test_a_wrong_value_is_described_without_the_words_of_the_library(
    environment: dict[str, str], repository: dict[str, object], says: str
) -> None:
    with pytest.raises(UsageError) as caught:
        load_settings({}, environment, repository)
    assert says in caught.value.what
    assert "Input" not in caught.value.what


def test_a_typo_gets_a_suggestion_and_all_faults_are_reported_at_once() -> None:
    wrong = {"max_bugdet": 3, "max_iterations": "many", "draft": "perhaps", "base_url": "x"}
    with pytest.raises(UsageError) as caught:
        load_settings({}, {}, wrong)
    what = caught.value.what
    assert "'max_bugdet' can't be set there (did you mean 'max_budget'?)" in what
    assert "'base_url' can't be set there;" in what, "a name that exists has no typo"
    assert ".github/resolver.yml, max_iterations: " in what
    assert ".github/resolver.yml, draft: " in what
    assert caught.value.next_step.startswith("a repository may set: ")


@pytest.mark.parametrize(
    ("environment", "repository", "what"),
    [
        (
            {"RESOLVER_TIMEOUT_SECONDS": "{setpu: 60}"},
            {},
            "RESOLVER_TIMEOUT_SECONDS, setpu: is not a part of timeout_seconds "
            "(did you mean 'setup'?)",
        ),
        (
            {},
            {"timeout_seconds": {"colour": "blue"}},
            ".github/resolver.yml, timeout_seconds, colour: is not a part of timeout_seconds, only "
            "setup, verification",
        ),
    ],
)
def test_an_unknown_part_of_a_setting_is_named_with_the_known_ones(
    environment: dict[str, str], repository: dict[str, object], what: str
) -> None:
    with pytest.raises(UsageError) as caught:
        load_settings({}, environment, repository)
    assert caught.value.what == what


def test_an_unknown_variable_is_reported_with_the_most_similar_one() -> None:
    warnings = environment_warnings(
        {
            "RESOLVER_DATABASE": "postgresql://db/resolver",
            "RESOLVER_MAX_BUGDET": "3",
            "RESOLVER_QQ": "1",
            "RESOLVER_IMAGE": "x",
            "LLM_MODLE": "y",
        },
        Settings.model_fields,
    )
    assert warnings == [
        "RESOLVER_DATABASE is not a setting and is ignored; did you mean RESOLVER_DATABASE_URL?",
        "RESOLVER_MAX_BUGDET is not a setting and is ignored; did you mean RESOLVER_MAX_BUDGET?",
        "RESOLVER_QQ is not a setting and is ignored",
    ]


def test_settings_and_cluster_variables_are_not_reported_as_unknown() -> None:
    known = {f"RESOLVER_{name.upper()}": "1" for name in Settings.model_fields}
    cluster = {
        "RESOLVER_SERVICE_HOST": "10.0.0.1",
        "RESOLVER_SERVICE_PORT_HTTP": "80",
        "RESOLVER_PORT": "tcp://10.0.0.1:80",
        "RESOLVER_PORT_80_TCP_ADDR": "10.0.0.1",
        "RESOLVER_POSTGRES_PORT_5432_TCP": "tcp://10.0.0.2:5432",
    }
    assert environment_warnings({**known, **cluster}, Settings.model_fields) == []


@pytest.mark.attack
def test_a_repository_sets_nothing_that_decides_where_a_secret_goes() -> None:
    """A repository sets an endpoint, a host or a token: only listed settings are accepted from
    it."""
    allowed = {n for n, f in Settings.model_fields.items() if setting_arguments(f)["repository"]}
    assert allowed == {
        "max_iterations", "max_budget", "max_time", "timeout_seconds", "image", "setup", "verify",
        "checks", "base_branch", "mcp", "condenser", "draft", "pull_request_labels",
        "signed_commits",
    }  # fmt: skip


@pytest.mark.attack
def test_a_repository_can_not_raise_a_limit_of_the_operator() -> None:
    """A repository raises a limit of the operator: the operator's holds."""
    environment = {"RESOLVER_MAX_BUDGET": "2"}
    assert load_settings({}, environment, {"max_budget": 50}).max_budget == 2


@pytest.mark.parametrize("content", [None, b"", b"# nothing\n"])
def test_a_missing_or_empty_file_sets_nothing(content: bytes | None) -> None:
    assert repository_settings(content) == {}


def test_a_broken_repository_file_names_the_line() -> None:
    with pytest.raises(UsageError, match=r"resolver.yml, line 2"):
        repository_settings(b"draft: true\n  image: [\n")


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_are_settings_or_a_usage_error(content: bytes) -> None:
    try:
        load_settings({}, {}, repository_settings(content))
    except UsageError as error:
        assert ".github/resolver.yml" in error.what


def test_a_part_comes_from_the_first_source_that_has_it() -> None:
    settings = load_settings(
        {},
        {"INPUT_TIMEOUT_SECONDS": "{setup: 60}", "RESOLVER_TIMEOUT_SECONDS": "{setup: 70}"},
        {"timeout_seconds": {"setup": 80, "verification": 1000}},
    )
    seconds = settings.timeout_seconds
    assert (seconds.setup, seconds.verification) == (60, 1000)
    addresses = {"GITHUB_SERVER_URL": "https://a"}
    assert load_settings({}, addresses).github_server_url == "https://a"
    addresses |= {"RESOLVER_GITHUB_URLS": "{server: https://b}"}
    assert load_settings({}, addresses).github_server_url == "https://b"
    addresses |= {"INPUT_GITHUB-SERVER-URL": "https://c"}
    assert load_settings({}, addresses).github_server_url == "https://c"


def test_a_part_may_be_a_secret() -> None:
    secret = load_settings({}, {"RESOLVER_SERVER": "{webhook_secret: canary-123456}"})
    assert secret.secrets == ("canary-123456",) and "canary" not in repr(secret)


@pytest.mark.parametrize(
    ("environment", "repository", "says"),
    [
        ({"RESOLVER_MODEL_OPTIONS": "{timeout: 0}"}, {}, "RESOLVER_MODEL_OPTIONS, timeout"),
        ({"RESOLVER_MODEL_OPTIONS": "9"}, {}, "RESOLVER_MODEL_OPTIONS: it is a mapping of"),
        ({"RESOLVER_MODEL_OPTIONS": "{tools: []}"}, {}, "RESOLVER_MODEL_OPTIONS: tools can't be"),
        ({"RESOLVER_MODEL_OPTIONS": "{my_key: x}"}, {}, "RESOLVER_MODEL_OPTIONS: my_key can't be"),
        ({"RESOLVER_MODEL_OPTIONS": "{top_p: {a: 1}}"}, {}, "RESOLVER_MODEL_OPTIONS: top_p is not"),
        ({"RESOLVER_MODEL_OPTIONS": "{"}, {}, "RESOLVER_MODEL_OPTIONS, line 1: not YAML"),
        ({}, {"timeout_seconds": {"stop": 1}}, ".github/resolver.yml, timeout_seconds, stop: "),
        ({}, {"condenser": "llm"}, ".github/resolver.yml, condenser: there is no condenser"),
    ],
)
def test_a_wrong_part_names_its_source(
    environment: dict[str, str], repository: dict[str, object], says: str
) -> None:
    with pytest.raises(UsageError) as caught:
        load_settings({}, environment, repository)
    assert says in caught.value.what


def test_the_settings_stay_few() -> None:
    count = sum(max(1, len(setting_parts(field))) for field in Settings.model_fields.values())
    assert count <= 75, (
        "make a value that nobody sets a constant beside its mechanism, or let a new setting "
        "replace an old one; raise this limit only if people set each of them"
    )
