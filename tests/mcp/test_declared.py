"""Tests of the settings of MCP servers, and which servers a run has."""

from typing import Any

import pytest
import yaml

from resolver.config.mcp_servers import MAX_SANDBOX_SERVERS, ChosenServers, choose_servers
from resolver.config.settings import Settings, load_settings
from resolver.errors import UsageError

DOCS = {"command": "docs-server", "env": {"TOKEN": "mcp-canary-1f2e3d"}}


def load(servers: object, mcp: object = None) -> Settings:
    repository = {} if mcp is None else {"mcp": mcp}
    return load_settings({}, {"RESOLVER_MCP_SERVERS": yaml.safe_dump(servers)}, repository)


def chosen(servers: object, mcp: object = None) -> ChosenServers:
    settings = load(servers, mcp)
    return choose_servers(settings.mcp_servers, settings.mcp)


def test_the_operators_servers_are_read_from_the_environment_as_yaml() -> None:
    settings = load({"docs": DOCS, "web": {"url": "https://mcp.example.org/mcp"}})
    assert list(settings.mcp_servers) == ["docs", "web"]
    assert settings.mcp_servers["docs"].env["TOKEN"].get_secret_value() == "mcp-canary-1f2e3d"


@pytest.mark.parametrize(
    ("server", "why"),
    [
        ({}, "a command or a url"),
        ({"command": "x", "url": "https://x"}, "a command or a url"),
        ({"url": "file:///etc/passwd"}, "begins with https"),
        ({"url": "https://"}, "begins with https"),
        ({"url": "https://me:secret@example.org"}, "credentials belong into headers"),
        ({"url": "http://example.org", "headers": {"A": "b"}}, "by https"),
        ({"url": "https://x", "env": {"A": "b"}}, "belong to a command"),
        ({"command": "x", "headers": {"A": "b"}}, "belong to a url"),
    ],
)
def test_an_invalid_server_is_refused_by_name(server: Any, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        load({"docs": server})
    assert "MCP_SERVERS" in caught.value.what and "docs" in caught.value.what
    assert why in caught.value.what


def test_a_refusal_does_not_show_a_credential() -> None:
    with pytest.raises(UsageError) as caught:
        load({"docs": {**DOCS, "headers": {"A": "mcp-canary-9z"}}})
    assert "mcp-canary" not in f"{caught.value}{caught.value.what}{caught.value.next_step}"


@pytest.mark.parametrize("name", ["1st", "a b", "", "x" * 33, "a/b", "å"])
def test_a_servers_name_is_a_plain_word(name: str) -> None:
    with pytest.raises(UsageError):
        load({name: DOCS})


def test_headers_without_tls_need_this_machine_or_permission() -> None:
    headers = {"headers": {"Authorization": "Bearer x"}}
    load({"a": {"url": "http://127.0.0.1:8000/mcp", **headers}})
    load({"a": {"url": "http://docs.internal/mcp", "plain_http": True, **headers}})


def test_credentials_of_servers_are_secrets_of_the_run() -> None:
    settings = load(
        {
            "docs": {**DOCS, "variables": {"PROJECT": "widgets-of-acme"}, "args": ["--verbose"]},
            "level": {"command": "x", "env": {"LEVEL": "info"}},
            "web": {
                "url": "https://mcp.example.org/s/q8Zk3LxT0aVbN5mRwYcE/mcp?api_key=query-canary-3",
                "headers": {"Authorization": "Bearer header-canary-2"},
            },
        }
    )
    secrets = set(settings.secrets)
    assert {
        "mcp-canary-1f2e3d", "Bearer header-canary-2", "header-canary-2", "query-canary-3",
        "q8Zk3LxT0aVbN5mRwYcE",
    } <= secrets  # fmt: skip
    assert not secrets & {"info", "widgets-of-acme", "--verbose"}
    assert "canary" not in repr(settings)


def test_a_repository_may_not_set_the_operators_servers() -> None:
    with pytest.raises(UsageError, match="can't be set there"):
        load_settings({}, {}, {"mcp_servers": {"mine": {"command": "x"}}})


@pytest.mark.parametrize("field", ["url", "headers", "env", "variables", "plain_http", "cwd"])
def test_a_repositorys_server_has_only_a_command(field: str) -> None:
    with pytest.raises(UsageError) as caught:
        load({}, {"mine": {"command": "x", field: "y"}})
    assert ".github/resolver.yml, mcp" in caught.value.what


def test_a_repository_cannot_change_the_command_of_the_operators_server() -> None:
    found = chosen({"docs": DOCS}, {"docs": {"command": "evil", "args": ["x"], "tools": ["a"]}})
    assert [s.server.command for s in found.host] == ["docs-server"]
    assert found.inside == ()
    assert "the repository's command is not used" in found.warnings[0]


def test_a_repository_can_disable_and_restrict_servers() -> None:
    found = chosen(
        {"docs": {**DOCS, "tools": ["get_*", "put"]}, "web": {"url": "https://x.org"}},
        {"web": False, "docs": {"tools": ["get_a", "delete"]}},
    )
    (docs,) = found.host
    tools = ("get_a", "get_b", "put", "delete")
    assert [t for t in tools if docs.allows(t)] == ["get_a"]


def test_an_unknown_server_is_reported() -> None:
    assert "docs is not a server" in chosen({}, {"docs": {"tools": ["a"]}}).warnings[0]
    assert chosen({}, {"docs": False}).warnings == ()


def test_the_number_of_a_repositorys_servers_is_limited() -> None:
    found = chosen({}, {f"s{n}": {"command": "x"} for n in range(MAX_SANDBOX_SERVERS + 1)})
    assert len(found.inside) == MAX_SANDBOX_SERVERS and "left out" in found.warnings[0]
    assert found.host == ()
