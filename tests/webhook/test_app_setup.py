"""The setup page of a server without a GitHub App, and what strangers try with it."""

import html
import json
import os
import re
import stat
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from resolver.cli.main import run
from resolver.config.server_variables import read_server_variables
from resolver.config.settings import load_settings
from resolver.entrypoints.webhook.app_setup import (
    UNREACHABLE_HOOK,
    AppSetup,
    delivery_poll_seconds,
    needs_app,
)
from resolver.entrypoints.webhook.missed_deliveries import POLL_INTERVAL_SECONDS
from resolver.entrypoints.webhook.stored_app import (
    APP_FILE,
    read_stored_app,
    store_app,
    with_stored_app,
)
from resolver.errors import ForgeError, UsageError
from resolver.github.events.app_manifest import AppCredentials
from resolver.runs.common import open_host
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import App
from tests.parts.runs import RESOLVER
from tests.parts.waiting import until

CREDENTIALS = AppCredentials(
    id=7,
    slug="fixer",
    pem=SecretStr("-----BEGIN RSA PRIVATE KEY-----\npem-canary"),
    webhook_secret=SecretStr("hook-canary"),
    client_id="Iv1",
    client_secret=SecretStr("client-canary"),
)
HOOK = "https://a.example/webhook"


class Setup(AppSetup):
    """A setup page whose GitHub creates `CREDENTIALS` for the code `good`."""

    def __init__(self) -> None:
        self.codes: list[str] = []
        self.stored: list[AppCredentials] = []
        super().__init__(
            "https://github.example", "https://a.example", HOOK, self.converted, self.stored.append
        )

    def converted(self, code: str) -> AppCredentials:
        self.codes.append(code)
        if code != "good":
            raise ForgeError("GitHub did not hand out the credentials", "create it again")
        return CREDENTIALS

    def opened(self) -> str:
        """Open the page; the state of its button."""
        return state_of(self.render_page(""))


def form_of(page: str) -> tuple[str, dict[str, Any]]:
    """Return the address that the button leads to, and the manifest that it sends."""
    [action] = re.findall(r'<form action="([^"]*)" method="post">', page)
    [manifest] = re.findall(r'name="manifest" value="([^"]*)"', page)
    return html.unescape(action), json.loads(html.unescape(manifest))


def state_of(page: str) -> str:
    query = urllib.parse.urlsplit(form_of(page)[0]).query
    return dict(urllib.parse.parse_qsl(query))["state"]


def test_the_button_sends_the_manifest_that_the_command_prints(
    capsys: pytest.CaptureFixture[str],
) -> None:
    action, manifest = form_of(Setup().render_page("acme"))
    assert action.startswith("https://github.example/organizations/acme/settings/apps/new?state=")
    assert manifest.pop("redirect_url") == "https://a.example/app/created"
    assert run(["app", "https://a.example", "--json", "--name", "resolver"], {}) == 0
    assert manifest == json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("owner", ["a/b", "../settings", "a?b", "-a", "a" * 200])
def test_an_owner_that_is_no_account_is_refused(owner: str) -> None:
    with pytest.raises(UsageError):
        Setup().render_page(owner)


@pytest.mark.attack
@pytest.mark.parametrize("state", ["", "guessed", "x" * 43])
def test_a_wrong_state_stores_nothing(state: str) -> None:
    """A stranger sends the server a code of an App of their own: without the state, it is not
    exchanged."""
    setup = Setup()
    setup.opened()
    assert setup.create("good", state) is None
    assert (setup.codes, setup.stored) == ([], [])


@pytest.mark.attack
def test_a_replayed_code_stores_nothing_a_second_time() -> None:
    """The address with code and state is opened again from the browser's history: it is good
    once."""
    setup = Setup()
    states = [setup.opened() for _ in range(2)]
    assert setup.create("good", states[0])
    assert [setup.create("good", state) for state in states] == [None, None]
    assert (setup.codes, len(setup.stored)) == (["good"], 1)


@pytest.mark.attack
@pytest.mark.parametrize("token", ["", "guessed", "\udcff"])
def test_a_stranger_without_the_setup_token_does_not_open_the_page(token: str) -> None:
    """A stranger finds a new server first: its setup page opens only with the token from the
    log."""
    setup = Setup()
    assert not setup.is_setup_token(token)
    assert setup.is_setup_token(setup.token)
    assert setup.token in setup.link


def test_the_file_is_for_its_owner_only_and_never_replaced(tmp_path: Path) -> None:
    path = store_app(tmp_path, CREDENTIALS)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    other = CREDENTIALS.model_copy(update={"id": 8})
    with pytest.raises(UsageError, match="File exists"):
        store_app(tmp_path, other)
    assert read_stored_app(tmp_path) == CREDENTIALS
    assert [path.name for path in tmp_path.iterdir()] == [APP_FILE]


def test_the_settings_have_the_stored_app_unless_others_are_given(tmp_path: Path) -> None:
    environment = {"RESOLVER_DATA_DIR": str(tmp_path)}
    assert needs_app(load_settings({}, environment), read_server_variables(environment))
    assert with_stored_app(environment) is environment
    store_app(tmp_path, CREDENTIALS)
    added = with_stored_app(environment)
    assert (added["RESOLVER_APP_ID"], added["GITHUB_WEBHOOK_SECRET"]) == ("7", "hook-canary")
    for own in ({"GITHUB_TOKEN": "t"}, {"RESOLVER_APP_ID": "9"}):
        assert with_stored_app(environment | own) == environment | own
        given = environment | own
        assert not needs_app(load_settings({}, given), read_server_variables(given))


def test_a_damaged_file_is_named_and_not_shown(tmp_path: Path) -> None:
    (tmp_path / APP_FILE).write_text('{"pem": "pem-canary"')
    with pytest.raises(UsageError, match=APP_FILE) as caught:
        read_stored_app(tmp_path)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("hook", "public_url", "is_short"),
    [(UNREACHABLE_HOOK, "", True), (HOOK, "", False), (UNREACHABLE_HOOK, HOOK, False)],
)
def test_deliveries_are_polled_often_if_none_arrives(
    github: GitHubServer, hook: str, public_url: str, is_short: bool
) -> None:
    app = github.add_app("fixer")
    app.hook["url"] = hook
    environment = {
        "GITHUB_API_URL": github.api_url,
        "RESOLVER_APP_ID": str(app.id),
        "RESOLVER_APP_PRIVATE_KEY": app.private_key,
    }
    settings, host = load_settings({}, environment), open_host(environment)
    seconds = delivery_poll_seconds(settings, host, public_url)
    assert (seconds < POLL_INTERVAL_SECONDS) is is_short


@pytest.fixture
def new_server(tmp_path: Path, github: GitHubServer) -> Iterator[Path]:
    """`resolver serve` with nothing but a model and the addresses of GitHub; its log."""
    log = tmp_path / "log"
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "LLM_MODEL": "openai/scripted",
        **github.addresses,
        "RESOLVER_RUNTIME": "local",
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [RESOLVER, "serve", "--port", "0"],
            env=environment,
            cwd=tmp_path,
            stdout=output,
            stderr=output,
        )
        try:
            yield log
        finally:
            process.kill()
            process.wait()


def test_a_new_server_gets_its_app_and_reads_deliveries_that_can_not_reach_it(
    new_server: Path, github: GitHubServer
) -> None:
    found = until(lambda: re.search(r"create it at (\S+)", new_server.read_text()), 120)
    link = found[1]
    with urllib.request.urlopen(link, timeout=30) as answer:
        page = answer.read().decode()
        assert f"form-action {github.server_url};" in answer.headers["Content-Security-Policy"]
    action, manifest = form_of(page)
    assert action.startswith(f"{github.server_url}/settings/apps/new?state=")
    for address in (link.partition("?")[0], f"{manifest['redirect_url']}?code=code&state=x"):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(address, timeout=30)
    app = created_app(github, manifest)
    github.note_delivery(app, "guid-1", {"zen": "Keep it simple."}, event="ping")
    query = urllib.parse.urlencode({"code": "code", "state": state_of(page)})
    with urllib.request.urlopen(f"{manifest['redirect_url']}?{query}", timeout=30) as answer:
        assert f"{github.server_url}/apps/fixer/installations/new" in answer.read().decode()
    until(lambda: "missed delivery guid-1 (ping): pong" in new_server.read_text(), 120)
    until(lambda: "listening on http://127.0.0.1:" in new_server.read_text(), 120)
    text = new_server.read_text()
    assert app.private_key not in text and "Traceback" not in text


def created_app(github: GitHubServer, manifest: dict[str, Any]) -> App:
    """Create the App of a manifest, as GitHub does."""
    app = github.add_app("fixer", permissions=manifest["default_permissions"])
    app.events = tuple(manifest["default_events"])
    app.hook["url"] = manifest["hook_attributes"]["url"]
    github.world.manifest_codes["code"] = app
    return app
