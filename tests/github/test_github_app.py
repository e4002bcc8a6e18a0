"""Tests of authenticating as a GitHub App: tokens per repository, renewal and redaction."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from resolver.config.settings import Settings, load_settings
from resolver.errors import ForgeError, UsageError
from resolver.github.client.app import PERMISSIONS, InstallationTokens
from resolver.github.client.failures import ServerFailure
from resolver.github.github_forge import GitHubForge
from resolver.runs.common import server_login
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
def tokens(github: GitHubServer) -> ForgeTokens:
    now: Callable[[], datetime] = github.world.now
    return ForgeTokens(now=now)


def settings_for(github: GitHubServer, app: App, **changes: str) -> Settings:
    own = {
        "RESOLVER_APP_ID": str(app.id),
        "RESOLVER_APP_PRIVATE_KEY": app.private_key,
        "RESOLVER_PACE": '{"first_wait": 0.01}',
    }
    return load_settings({}, {**github.addresses, **own, **changes})


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
    for name in (NAME, OTHER):
        made = github.world.tokens[source_of(tokens, settings, name).token()]
        assert made.repositories == frozenset({name})
        needed = {key: level for key, level in PERMISSIONS.items() if key in app.permissions}
        assert made.permissions == needed


def test_a_token_is_requested_once_and_renewed_before_it_ends(
    github: GitHubServer, app: App, tokens: ForgeTokens
) -> None:
    settings = settings_for(github, app)
    forge = GitHubForge(access_of(settings, source_of(tokens, settings, NAME)), NAME)
    forge.branches("agent/")
    first = tokens.credential(settings, NAME)
    github.advance(44 * 60)
    assert tokens.credential(settings, NAME.upper()) == first
    github.advance(2 * 60)
    github.fail_next("POST", "/access_tokens$", 502, times=5)  # a request and its repetitions
    assert tokens.credential(settings, NAME) == first, "it is valid for some minutes more"
    assert tokens.credential(settings, NAME) != first
    github.advance(50 * 60)  # the first has ended, and the second soon will
    forge.branches("agent/")
    made = [r.status for r in github.requests if r.path.endswith("/access_tokens")]
    assert made.count(201) == 3 and {r.status for r in github.requests} <= {200, 201, 502}


@pytest.mark.parametrize(
    ("error", "minutes"),
    [
        (ForgeError("the installation was removed", "install it"), 46),
        (ServerFailure("GitHub answered 502", "try again", "forge_down"), 60),
    ],
)
def test_a_token_that_was_withdrawn_or_has_ended_is_not_used_on(
    error: ForgeError, minutes: int
) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    moments = [start]
    answers: list[tuple[str, datetime]] = [("ghs_first", start + timedelta(hours=1))]

    def create_token(_: str) -> tuple[str, datetime]:
        if answers:
            return answers.pop()
        raise error

    app: Any = SimpleNamespace(create_token=create_token)
    source = InstallationTokens(app, NAME, lambda *_: None, lambda: moments[-1])
    assert source.token() == "ghs_first"
    moments.append(start + timedelta(minutes=minutes))
    with pytest.raises(ForgeError) as caught:
        source.token()
    assert caught.value is error


def test_every_secret_of_the_app_is_redacted(
    github: GitHubServer, app: App, tokens: ForgeTokens
) -> None:
    settings = settings_for(github, app)
    redactor = Redactor(settings.secrets, tokens.issued_tokens)
    source = source_of(tokens, settings, NAME)
    assert source.app.page().slug == "our-agent"
    [signed] = tokens.issued_tokens.values
    body, value = app.private_key.splitlines()[3], source.token()
    assert len(value) > 500 and body not in repr(settings)
    for secret in (signed, value, body):
        assert secret[10:50] not in redactor.redact_text(f"x {secret} y")


def test_the_key_comes_on_one_line_or_in_a_file(
    github: GitHubServer, app: App, tokens: ForgeTokens, tmp_path: Path
) -> None:
    file = tmp_path / "app.pem"
    file.write_text(app.private_key)
    for given in (app.private_key.replace("\n", "\\n"), str(file)):
        settings = settings_for(github, app, RESOLVER_APP_PRIVATE_KEY=given)
        assert app.private_key in settings.secrets
        assert source_of(tokens, settings, NAME).token()


AAAA = "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "RESOLVER_APP_PRIVATE_KEY",
            "/no/such/file",
            "neither the text of a PEM file nor the path",
        ),
        ("RESOLVER_APP_PRIVATE_KEY", "~no-such-person/x", "neither the text of a PEM file nor"),
        ("RESOLVER_APP_PRIVATE_KEY", AAAA, "can't be read"),
        ("RESOLVER_APP_PRIVATE_KEY", "", "app_private_key"),
        ("RESOLVER_APP_ID", "", "app_id"),
    ],
)
def test_an_invalid_app_is_a_usage_error(
    github: GitHubServer, app: App, tokens: ForgeTokens, name: str, value: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message) as error:
        tokens.source(settings_for(github, app, **{name: value}), NAME)
    assert "AAAA" not in str(error.value)


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


def test_during_an_outage_a_server_does_not_start(
    github: GitHubServer, app: App, tmp_path: Path
) -> None:
    settings = settings_for(github, app)
    host = RunHost({}, tmp_path)
    github.fail_next("GET", "^/app$", 502, times=2)
    with pytest.raises(UsageError, match="own login is not known"):
        server_login(settings, host)
    assert len(github.requests) == 2, "it has to be ready soon"
    assert server_login(settings, host) == "our-agent[bot]"
