"""`resolver app`: the form and the manifest of the GitHub App."""

from urllib.parse import parse_qs, urlsplit

import pytest

from resolver.cli.main import run
from resolver.github.client.app import PERMISSIONS
from resolver.github.events.app_manifest import EVENTS


def said(capsys: pytest.CaptureFixture[str], *args: str, **environment: str) -> str:
    assert run(["app", *args], environment) == 0
    return capsys.readouterr().out


def form_in(text: str) -> tuple[str, dict[str, list[str]]]:
    [line] = [line.strip() for line in text.splitlines() if "/apps/new?" in line]
    parts = urlsplit(line)
    return f"{parts.scheme}://{parts.netloc}{parts.path}", parse_qs(parts.query)


def test_the_form_has_everything_filled_in(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "https://agent.example.org/", "--owner", "acme")
    address, fields = form_in(text)
    assert address == "https://github.com/organizations/acme/settings/apps/new"
    assert fields["webhook_url"] == ["https://agent.example.org/webhook"]
    assert fields["events[]"] == list(EVENTS)
    assert {name: fields[name] for name in PERMISSIONS} == {n: [p] for n, p in PERMISSIONS.items()}
    assert "RESOLVER_APP_PRIVATE_KEY" in text
    assert "resolver serve" in text


@pytest.mark.parametrize("url", ["http://a.example", "a.example", "https://"])
def test_a_server_without_tls_is_refused(url: str) -> None:
    assert run(["app", url], {}) == 2
