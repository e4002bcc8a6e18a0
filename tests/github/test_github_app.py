"""Tests of authenticating as a GitHub App: tokens per repository, renewal and redaction."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from resolver.config.settings import Settings, load_settings
from resolver.errors import ForgeError, UsageError
from resolver.github.client.app import PERMISSIONS, InstallationTokens
from resolver.github.github_forge import GitHubForge
from resolver.runs.common import app_login, server_login
from resolver.runs.wiring.sandbox import ForgeTokens, RunHost, access_of
from resolver.security.redaction import Redactor
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import App

NAME, OTHER = "octo/demo", "evil/demo"


@pytest.fixture
def app(github: GitHubServer) -> App:
    """An App on two repositories of one name."""
    github.create_repository(NAME, {"README.md": "hello\n"}, private=True)
    github.create_repository(OTHER, {"README.md": "other\n"}, private=True)
    return github.add_app("our-agent", NAME, OTHER)


@pytest.fixture
def now(github: GitHubServer) -> Callable[[], datetime]:
    return github.world.now


@pytest.fixture
def tokens(now: Callable[[], datetime]) -> ForgeTokens:
    return ForgeTokens(now=now)


def settings_for(github: GitHubServer, app: App, **changes: str) -> Settings:
    return load_settings(
        {},
        {
            **github.addresses,
            "RESOLVER_APP_ID": str(app.id),
            "RESOLVER_APP_PRIVATE_KEY": app.private_key,
            **changes,
        },
    )


def issued_count(github: GitHubServer) -> int:
    return sum(request.path.endswith("/access_tokens") for request in github.requests)


def source_of(tokens: ForgeTokens, settings: Settings, repository: str) -> InstallationTokens:
    source = tokens.source(settings, repository)
    assert isinstance(source, InstallationTokens)
    return source


@pytest.mark.attack
def test_a_token_is_limited_to_the_repository_and_needed_permissions(
    github: GitHubServer, app: App, tokens: ForgeTokens
) -> None:
    """An installation has several repositories: a run's token is for one, with the needed
    permissions."""
    settings = settings_for(github, app, GITHUB_TOKEN="ghp_given")
    made = github.world.tokens[source_of(tokens, settings, NAME).token()]
    assert made.repositories == frozenset({NAME})
    assert made.permissions == {
        name: level for name, level in PERMISSIONS.items() if name in app.permissions
    } | {"checks": "read"}
    other = github.world.tokens[source_of(tokens, settings, OTHER).token()]
    assert other.repositories == frozenset({OTHER})


def test_a_token_is_requested_once(github: GitHubServer, app: App, tokens: ForgeTokens) -> None:
    settings = settings_for(github, app)
    forge = GitHubForge(access_of(settings, source_of(tokens, settings, NAME)), NAME)
    forge.branches("agent/")
    forge.branches("agent/")
    assert tokens.credential(settings, NAME.upper()) == tokens.credential(settings, NAME)
    assert issued_count(github) == 1


def test_a_token_is_renewed_before_it_ends(
    github: GitHubServer, app: App, tokens: ForgeTokens
) -> None:
    settings = settings_for(github, app)
    forge = GitHubForge(access_of(settings, source_of(tokens, settings, NAME)), NAME)
    forge.branches("agent/")
    first = tokens.credential(settings, NAME)
    github.advance(44 * 60)
    assert tokens.credential(settings, NAME) == first
    github.advance(2 * 60)
    assert tokens.credential(settings, NAME) != first
    github.advance(50 * 60)  # the first has ended, and the second soon will
    forge.branches("agent/")
    assert issued_count(github) == 3
    assert {request.status for request in github.requests} <= {200, 201}


def test_a_token_is_registered_for_redaction_before_use(
    github: GitHubServer, app: App, tokens: ForgeTokens
) -> None:
    redactor = Redactor((), tokens.issued_tokens)
    settings = settings_for(github, app)
    source = source_of(tokens, settings, NAME)
    assert source.app.page().slug == "our-agent"
    [signed] = tokens.issued_tokens.values
    value = source.token()
    assert len(value) > 500
    for secret in (signed, value):
        assert redactor.holds_secret(f"a {secret} b")
        assert secret[100:140] not in redactor.redact_text(f"x {secret[100:140]} y")


def test_the_private_key_is_a_secret_of_the_settings(github: GitHubServer, app: App) -> None:
    settings = settings_for(github, app)
    body = app.private_key.splitlines()[3]
    assert Redactor(settings.secrets).redact_text(f"a {body} b") == "a [redacted] b"
    assert body not in repr(settings)


@pytest.mark.parametrize("form", ["one line", "file"])
def test_the_key_comes_on_one_line_or_in_a_file(
    github: GitHubServer, app: App, tokens: ForgeTokens, form: str, tmp_path: Path
) -> None:
    given = app.private_key.replace("\n", "\\n")
    if form == "file":
        (tmp_path / "app.pem").write_text(app.private_key)
        given = str(tmp_path / "app.pem")
    settings = settings_for(github, app, RESOLVER_APP_PRIVATE_KEY=given)
    assert app.private_key in settings.secrets
    assert source_of(tokens, settings, NAME).token()


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("/no/such/file", "neither the text of a PEM file nor the path of one"),
        ("~no-such-person/x", "neither the text of a PEM file nor the path of one"),
        ("-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----", "can't be read"),
    ],
)
def test_an_invalid_key_is_a_usage_error(
    github: GitHubServer, app: App, tokens: ForgeTokens, key: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message) as error:
        tokens.source(settings_for(github, app, RESOLVER_APP_PRIVATE_KEY=key), NAME)
    assert "AAAA" not in str(error.value)


@pytest.mark.parametrize("left_out", ["RESOLVER_APP_ID", "RESOLVER_APP_PRIVATE_KEY"])
def test_an_incomplete_app_is_reported(
    github: GitHubServer, app: App, tokens: ForgeTokens, left_out: str
) -> None:
    with pytest.raises(UsageError, match=left_out.removeprefix("RESOLVER_").lower()):
        tokens.source(settings_for(github, app, **{left_out: ""}), NAME)


@pytest.mark.parametrize("message", ["401", "not installed on octo/else", "suspended"])
def test_an_app_that_gets_no_token_is_reported(
    github: GitHubServer, app: App, tokens: ForgeTokens, message: str
) -> None:
    name = NAME
    if message == "401":
        app.public_key = github.add_app("another").public_key
    elif message == "suspended":
        app.suspended = True
    else:
        name = "octo/else"
        github.create_repository(name)
    with pytest.raises(ForgeError, match=message) as error:
        source_of(tokens, settings_for(github, app), name).token()
    assert "BEGIN" not in str(error.value)


@pytest.mark.attack
def test_a_token_for_another_repository_is_not_used(
    github: GitHubServer, app: App, tokens: ForgeTokens
) -> None:
    """A token of another repository is returned: it is not used."""
    source = source_of(tokens, settings_for(github, app), NAME)
    other = source_of(tokens, settings_for(github, app), OTHER).token()
    answer = next(e for e in github.requests if e.path.endswith("/access_tokens")).answer
    assert answer is not None
    github.fail_next("POST", "/access_tokens$", 201, body=answer.document)
    with pytest.raises(ForgeError, match="other repositories than octo/demo"):
        source.token()
    assert all(other not in str(e.headers) for e in github.requests)


def test_the_login_is_unknown_during_an_outage_after_a_few_requests(
    github: GitHubServer, app: App, tmp_path: Path
) -> None:
    settings = settings_for(github, app, RESOLVER_PACE='{"first_wait": 0.01}')
    host = RunHost({}, tmp_path)
    github.fail_next("GET", "^/app$", 502, times=99)
    assert app_login(settings, host) == {}
    assert len(github.requests) == 5
    github.forget_failures()
    assert app_login(settings, host) == {"bot_login": "our-agent[bot]"}


def test_a_server_does_not_start_without_its_own_login(
    github: GitHubServer, app: App, tmp_path: Path
) -> None:
    """Whether the outage ends soon is for whoever starts the server again."""
    settings = settings_for(github, app, RESOLVER_PACE='{"first_wait": 0.01}')
    host = RunHost({}, tmp_path)
    github.fail_next("GET", "^/app$", 502, times=99)
    with pytest.raises(UsageError, match="own login is not known"):
        server_login(settings, host)
    assert len(github.requests) == 2, "it has to be ready soon"
    github.forget_failures()
    assert server_login(settings, host) == "our-agent[bot]"
