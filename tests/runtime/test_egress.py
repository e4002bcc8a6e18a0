"""Tests of egress: the allow-list, the resolved addresses, the connection log."""

import ipaddress
import re
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.config.allowed_hosts import NONE, PRESETS, WEB_PORTS, AllowList, is_address
from resolver.config.settings import load_settings
from resolver.errors import UsageError
from resolver.events.lifecycle import Egress
from resolver.runtime.egress import (
    MAX_CONNECTIONS,
    MAX_GROUPS,
    MAX_SEPARATE_EVENTS,
    EgressLog,
    EgressPolicy,
    EgressRefusal,
    refusal_reason,
)
from resolver.runtime.tunnel import MAX_HEAD_BYTES, check_first_bytes
from tests.runtime.outside import let_out, names

LIST = AllowList.parse([
    "packages", "example.org", "*.wild.example", "ports.example:8443", "private:mirror.corp:8080",
    "private:10.1.2.3:9000", "private:[fd00::5]:9000",
])  # fmt: skip


@pytest.mark.parametrize(
    ("host", "port"),
    [
        ("pypi.org", 443), ("PyPI.org", 443), ("pypi.org", 80), ("example.org", 443),
        ("a.wild.example", 443), ("a.b.wild.example", 80), ("ports.example", 8443),
        ("mirror.corp", 8080), ("10.1.2.3", 9000), ("fd00::5", 9000),
    ],
)  # fmt: skip
def test_listed_hosts_are_allowed(host: str, port: int) -> None:
    assert port in LIST.find(host, port).ports


@pytest.mark.parametrize(
    ("host", "port", "says"),
    [
        ("pypi.org.evil.test", 443, "not on the allow-list"),
        ("evilpypi.org", 443, "not on the allow-list"),
        ("evil-example.org", 443, "not on the allow-list"),
        ("sub.example.org", 443, "not on the allow-list"),
        ("wild.example", 443, "not on the allow-list"),
        ("evilwild.example", 443, "not on the allow-list"),
        ("xn--pyp-2na.org", 443, "not on the allow-list"),
        ("pypi.org", 22, "port 22"),
        ("ports.example", 443, "only 8443"),
        ("mirror.corp", 443, "only 8080"),
        ("10.1.2.3", 80, "only 9000"),
        ("10.1.2.4", 9000, "addresses are refused"),
        ("pypi.org.", 443, "not a plain host name"),
        ("user@pypi.org", 443, "not a plain host name"),
        ("pypi.org\0.evil.test", 443, "not a plain host name"),
        ("pypi.org\r\n", 443, "not a plain host name"),
        ("pyрi.org", 443, "not a plain host name"),
        ("ⓟypi.org", 443, "not a plain host name"),
        ("", 443, "not a plain host name"),
        ("a" * 300 + ".org", 443, "not a plain host name"),
        ("*.wild.example", 443, "not a plain host name"),
        ("evil.test\r\n.wild.example", 443, "not a plain host name"),
        ("evil.test/.wild.example", 443, "not a plain host name"),
        ("evil.test:80#.wild.example", 443, "addresses are refused"),
        ("a..wild.example", 443, "not a plain host name"),
        (".wild.example", 443, "not a plain host name"),
        *[(host, 80, "addresses are refused") for host in (
            "127.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0x7f.1", "1.1.1.1",
            "::1", "[::1]", "::ffff:127.0.0.1", "fe80::1%eth0", "127.0.0.1.", "169.254.169.254",
        )],
    ],
)  # fmt: skip
def test_other_hosts_are_refused_with_a_reason(host: str, port: int, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        LIST.find(host, port)


@pytest.mark.attack
@given(st.text(max_size=40), st.integers(0, 70000))
def test_no_other_text_is_ever_allowed(host: str, port: int) -> None:
    """Any text is tried as a host: only exact names of the list are allowed."""
    try:
        rule = AllowList.parse(["pypi.org", "*.wild.example"]).find(host, port)
    except ValueError:
        return
    assert host.lower() == "pypi.org" or host.lower().endswith(".wild.example")
    assert port in rule.ports == WEB_PORTS


@pytest.mark.parametrize(
    "entry",
    [
        "example", "localhost", "*", "*.org", "*.", "exa mple.org", "http://example.org",
        "example.org/path", "user@example.org", "example.org:0", "example.org:99999",
        "example.org:https", "a.*.example", "*example.org", "10.0.0.1", "169.254.169.254:80",
        "[::1]:80", "2130706433", "0x7f.0.0.1", "private:mirror.corp", "private:*.corp:80",
        "private:2130706433:80", "private:0x7f.1:80", "private:[::1%lo]:80", "private::80",
        "package", "", "pypi.org.", "пример.рф",
    ],
)  # fmt: skip
def test_an_ambiguous_entry_is_an_error(entry: str) -> None:
    with pytest.raises(ValueError, match=r".") as wrong:
        AllowList.parse([entry])
    assert repr(entry) in str(wrong.value)


@given(st.text(max_size=30) | st.from_regex(r"(private:)?[a-z0-9.*:\[\]-]{1,20}", fullmatch=True))
def test_any_entry_is_read_or_an_error(entry: str) -> None:
    try:
        AllowList.parse([entry])
    except ValueError as error:
        assert str(error)


def test_the_preset_none_allows_nothing_and_stands_alone() -> None:
    assert not AllowList.parse([NONE]) and not AllowList.parse([])
    assert AllowList.parse([NONE]).entries == ()
    with pytest.raises(ValueError, match="stands alone"):
        AllowList.parse([NONE, "packages"])


def test_the_page_names_every_host_of_every_preset() -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/egress.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.MULTILINE))
    assert set(rows) == set(PRESETS)
    for name, hosts in PRESETS.items():
        assert tuple(re.findall(r"`([^`]+)`", rows[name])) == hosts


NEVER = [
    "0.0.0.0", "0.1.2.3", "169.254.169.254", "169.254.170.2", "224.0.0.1", "239.1.1.1",
    "240.0.0.1", "255.255.255.255", "100.100.100.200", "168.63.129.16", "::", "fe80::1",
    "fe80::1%eth0", "ff02::1", "fd00:ec2::254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe",
    "not an address", "", "127.1", "2130706433",
]  # fmt: skip
NOT_PUBLIC = [
    "127.0.0.1", "127.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
    "100.64.0.1", "192.0.2.1", "198.18.0.1", "198.51.100.7", "203.0.113.9", "192.88.99.1", "::1",
    "fd00::1", "fc00::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1",
    "64:ff9b::a00:1", "64:ff9b:1::1", "2002:7f00:1::", "2002:a00:1::1", "2001:0:1::1",
    "2001:db8::1", "100::1", "::ffff:0:127.0.0.1", "3fff::1", "4000::1", "5f00::1",
]  # fmt: skip
PUBLIC = ["1.1.1.1", "151.101.0.223", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]


@pytest.mark.parametrize(
    ("addresses", "refused", "refused_if_listed"),
    [
        (NEVER, True, True),
        (NOT_PUBLIC, True, None),
        (["127.0.0.1", "10.0.0.1", "::1", "fd00::1", "100.64.0.1"], True, False),
        (PUBLIC, False, False),
    ],
    ids=["never", "not public", "private", "public"],
)
def test_an_address_is_refused_by_its_kind(
    addresses: list[str], refused: bool, refused_if_listed: bool | None
) -> None:
    for address in addresses:
        assert bool(refusal_reason(address)) is refused, address
        if refused_if_listed is not None:
            listed = refusal_reason(address, private=True)
            assert bool(listed) is refused_if_listed, address


@given(st.ip_addresses())
def test_no_special_address_is_allowed(address: object) -> None:
    assert isinstance(address, ipaddress.IPv4Address | ipaddress.IPv6Address)
    special = (address.is_private, address.is_loopback, address.is_link_local,
               address.is_multicast, address.is_unspecified)  # fmt: skip
    if any(special):
        assert refusal_reason(str(address)) or str(address).startswith(("64:ff9b:", "::ffff:"))


@pytest.mark.attack
@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fd00::1"])
def test_a_listed_name_with_a_private_address_is_refused(address: str) -> None:
    """An allowed name resolves to a private address: refused."""
    policy = let_out("rebound.example", known={"rebound.example": ["151.101.0.223", address]})
    with pytest.raises(EgressRefusal, match="address") as refused:
        policy.dial("rebound.example", 443)
    assert refused.value.status == 403 and not refused.value.allowed


def test_a_name_with_this_machines_address_is_refused() -> None:
    own = [info[4][0] for info in socket.getaddrinfo(socket.gethostname(), 80)]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.99", 9))
        own.append(probe.getsockname()[0])
    for address in map(str, own):
        with pytest.raises(EgressRefusal):
            let_out("me.example", known={"me.example": [address]}).dial("me.example", 80)


@pytest.mark.attack
def test_a_name_is_resolved_once_and_that_address_is_used() -> None:
    """An allowed name resolves to another address a moment later (DNS rebinding): the checked one
    is used."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        answers = iter([["127.0.0.1"], ["127.0.0.2"], ["169.254.169.254"]])
        resolved_hosts = []

        def turning(host: str, port: int) -> list[str]:
            resolved_hosts.append(host)
            return next(answers)

        policy = EgressPolicy(AllowList.parse([f"private:turning.test:{port}"]), 10, turning)
        with policy.dial("turning.test", port) as made:
            assert made.getpeername() == ("127.0.0.1", port)
    assert resolved_hosts == ["turning.test"]


def test_an_unlisted_name_is_not_resolved() -> None:
    resolve = names({})
    policy = EgressPolicy(AllowList.parse(["example.org"]), 10, resolve)
    with pytest.raises(EgressRefusal, match="not on the allow-list") as refused:
        policy.dial("data-in-a-name.evil.example", 443)
    assert resolve.requested_hosts == []
    assert "example.org" in refused.value.hint


def test_an_unreachable_host_is_allowed_with_a_reason() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    policy = let_out(f"private:gone.test:{port}", known={"gone.test": ["127.0.0.1"]})
    with pytest.raises(EgressRefusal, match="could not be reached") as refused:
        policy.dial("gone.test", port)
    assert refused.value.allowed and refused.value.status == 502
    with pytest.raises(EgressRefusal, match="was not resolved"):
        let_out("unknown.example").dial("unknown.example", 443)


def test_the_connection_log_is_limited() -> None:
    ledger = EgressLog(10)
    for number in range(5_000):
        ledger.note(Egress(host=f"h{number}.example", port=1, allowed=False, reason="no"))
    taken = ledger.take()
    assert len(taken) <= MAX_SEPARATE_EVENTS + MAX_GROUPS + 1
    assert sum(connection.connections for connection in taken) == 5_000
    assert ledger.take() == []


def test_similar_connections_are_combined_after_the_first_hundred() -> None:
    ledger = EgressLog(10)
    for _ in range(MAX_SEPARATE_EVENTS + 50):
        ledger.note(Egress(host="h", port=1, allowed=True, bytes_sent=2, bytes_received=3))
    last = ledger.take()[-1]
    assert (last.connections, last.bytes_sent, last.bytes_received) == (50, 100, 150)


def test_connections_and_bytes_of_a_run_are_limited() -> None:
    ledger = EgressLog(100)
    assert ledger.count_bytes(100) and not ledger.count_bytes(1)
    with pytest.raises(EgressRefusal, match="100 bytes") as refused:
        ledger.begin()
    assert refused.value.status == 429
    many = EgressLog(100)
    for _ in range(MAX_CONNECTIONS):
        many.begin()
    with pytest.raises(EgressRefusal, match="20,000 connections"):
        many.begin()


def client_hello(name: str | None) -> bytes:
    """A real hello, from the ssl module."""
    import ssl

    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    context.check_hostname = False
    tls = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def records(hello: bytes) -> bytes:
    """The same hello in several records."""
    parts = [hello[start : start + 40] for start in range(5, len(hello), 40)]
    return b"".join(b"\x16\x03\x01" + len(part).to_bytes(2) + part for part in parts)


HEAD = b"GET / HTTP/1.1\r\nX: 1\r\nhost: %s\r\n\r\n"


@pytest.mark.parametrize(
    ("data", "verdict"),
    [
        (client_hello("PyPI.org"), ""),
        (client_hello(None), ""),
        (client_hello("evil.example"), "'evil.example'"),
        (records(client_hello("evil.example")), "'evil.example'"),
        (HEAD % b"pypi.org", ""),
        (HEAD % b"pypi.org:80", ""),
        (HEAD % b"evil.example", "another host"),
        (HEAD % b"pypi.org:81", "another host"),
        (b"GET / HTTP/1.1\r\nHost: pypi.org\r\nHost: evil.example\r\n\r\n", "another host"),
        (b"GET / HTTP/1.1\r\nHost: ", None),
        (b"GE", None),
    ],
    ids=range(11),  # a hello is random
)
def test_the_first_bytes_must_fit_the_host(data: bytes, verdict: str | None) -> None:
    found = check_first_bytes(data, "pypi.org", 80)
    assert found == verdict if not verdict else verdict in str(found)


@given(st.integers(1, 600))
def test_a_fragmented_hello_is_awaited(cut: int) -> None:
    hello = client_hello("evil.example")
    assert check_first_bytes(hello[: min(cut, len(hello) - 1)], "pypi.org", 443) is None


@given(
    st.binary(max_size=300),
    st.sampled_from([b"", b"\x16\x03\x01", b"GET ", b"\x16\x03\x01\0\x20\x01"]),
)
def test_any_first_bytes_are_judged(noise: bytes, start: bytes) -> None:
    verdict = check_first_bytes(start + noise, "pypi.org", 443)
    assert verdict is None or isinstance(verdict, str)
    assert (
        check_first_bytes(start + noise + b"x" * MAX_HEAD_BYTES, "pypi.org", 443) is not None
        or not start + noise
    )


@given(st.text(max_size=30))
def test_every_address_form_of_the_kernel_is_recognized(host: str) -> None:
    try:
        socket.inet_aton(host)
    except (OSError, ValueError, UnicodeError):
        return
    assert is_address(host) or any(c.isspace() for c in host)


@pytest.mark.attack
def test_only_the_operator_can_set_egress() -> None:
    """A repository's settings list hosts to reach: the setting is refused."""
    assert not load_settings({}, {}).allow_list
    given_ = load_settings({}, {"RESOLVER_EGRESS": "packages, example.org"})
    assert given_.allow_list.entries == ("packages", "example.org")
    assert load_settings({"egress": ("none",)}, {"RESOLVER_EGRESS": "packages"}).egress == ("none",)
    with pytest.raises(UsageError, match="'egress' can't be set there"):
        load_settings({}, {}, {"egress": ["packages"]})
    with pytest.raises(UsageError, match="'egress_max_bytes' can't be set there"):
        load_settings({}, {}, {"egress_max_bytes": 10**12})


def test_a_wrong_entry_is_reported_with_its_source() -> None:
    with pytest.raises(UsageError) as wrong:
        load_settings({}, {"INPUT_EGRESS": "packages, 10.0.0.1"})
    assert wrong.value.what.startswith("INPUT_EGRESS: '10.0.0.1' is an address")
