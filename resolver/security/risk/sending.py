"""Rules for commands that send data away or let somebody in: uploads, raw connections, data in DNS
names, remote shells. Also for access to a cloud's metadata service.
"""

import re
from collections.abc import Iterator

from resolver.security.risk.destruction import git_words
from resolver.security.risk.expansion import OPAQUE
from resolver.security.risk.findings import (
    DECODED,
    ENCODED,
    ENVIRONMENT,
    FILE,
    IDENTITY,
    SECRET,
    UNSET_VARIABLE,
    RiskFinding,
    high,
    is_secret_name,
    medium,
)
from resolver.security.risk.flows import urls_of
from resolver.security.risk.hosts import NetworkHost, judge_host, network_host_of
from resolver.security.risk.walk import LITERAL, ShellCall

_SENSITIVE_TAGS = frozenset({SECRET, ENVIRONMENT, FILE})
"""Origins of data that may be confidential."""

_IDENTITY_TAGS = frozenset({SECRET, ENVIRONMENT, IDENTITY, ENCODED})
"""Origins of data that reveals something about the machine even in a URL or a DNS name."""

_BODY_OPTIONS = (
    "-d",
    "--data",
    "--data-binary",
    "--data-raw",
    "--data-ascii",
    "--data-urlencode",
    "--json",
)
_FORM_OPTIONS = ("-F", "--form")
_UPLOAD_OPTIONS = ("-T", "--upload-file")
_FETCHERS = frozenset({"curl", "wget", "http", "https", "xh", "aria2c", "lynx", "ftp", "lftp"})
_NAME_TOOLS = frozenset(
    {"dig", "nslookup", "host", "drill", "ping", "ping6", "getent", "traceroute"}
)
_REGISTRIES = frozenset(
    {"npm", "yarn", "pnpm", "cargo", "gem", "poetry", "twine", "uv", "hatch", "flit"}
)
_PUBLISHES = {("publish",), ("upload",), ("push",)}
_RAW_CONNECTIONS = frozenset({"nc", "ncat", "netcat", "socat", "telnet"})
_COPIERS = frozenset({"scp", "rsync", "sftp", "rclone"})
_NETWORK_DEVICE = re.compile(r"/dev/(?:tcp|udp)/([^/\s'\"]{1,253})/")
_REMOTE_PATH = re.compile(r"(?:[\w.-]{1,64}@)?([\w.-]{2,253}|\[[0-9a-fA-F:]{2,45}\]):(?!\\)")
_METADATA_VARIABLE = re.compile(r"ACTIONS_(?:ID_TOKEN_REQUEST|RUNTIME)_|AWS_CONTAINER_CREDENTIALS")


def sending_findings(call: ShellCall) -> Iterator[RiskFinding]:
    """Yield findings about what the call would send away, and to whom."""
    name = call.name
    yield from _device_findings(call)
    yield from _metadata_findings(call)
    if name in {"curl", "wget"} or name in _FETCHERS:
        yield from _fetcher(call)
    elif name in _NAME_TOOLS and not _is_local_lookup(call):
        if call.tags & (_IDENTITY_TAGS | {FILE}) or (OPAQUE in call.text and call.tags):
            yield high("exfiltration", f"data in a name or a packet: {call.text}")
    elif name in _RAW_CONNECTIONS:
        yield from _raw(call)
    elif name == "openssl" and call.args[:1] == ("s_client",):
        yield from _send_input(call, _option_value(call, ("-connect",)) or "")
    elif name in _COPIERS:
        yield from _copy_findings(call)
    elif name == "ssh" and call.operands:
        yield from _send_input(call, call.operands[0].rpartition("@")[2], always_report=True)
    elif name in {"mail", "sendmail", "mutt", "mailx"}:
        yield high("exfiltration", call.text)
    elif name == "git":
        yield from _git(call)
    elif name in _REGISTRIES and call.operands[:1] in _PUBLISHES and not call.has("", "--dry-run"):
        yield medium("publishes", call.text)


def _is_local_lookup(call: ShellCall) -> bool:
    """Return True if the tool only reads a database of this machine."""
    return call.name == "getent" and call.operands[:1] in {("passwd",), ("group",), ("services",)}


def _device_findings(call: ShellCall) -> Iterator[RiskFinding]:
    texts = [target for _, target in call.redirects] + list(call.args)
    for text in texts if call.name not in {"echo", "printf", "grep", "rg", "git"} else ():
        match = _NETWORK_DEVICE.match(text)
        if match and judge_host(match[1]) is not NetworkHost.LOCAL:
            yield high("raw_connection", f"{call.text} {text}")


def _metadata_findings(call: ShellCall) -> Iterator[RiskFinding]:
    if call.name in {"echo", "printf", "grep", "rg", "git", "sed"}:
        return
    is_network_program = call.name in _FETCHERS or call.name in _RAW_CONNECTIONS
    for word in call.args:
        names_host = "://" in word or (is_network_program and not word.startswith("-"))
        if names_host and judge_host(word) is NetworkHost.METADATA:
            yield high("cloud_metadata", call.text)
    if call.name in _FETCHERS and _METADATA_VARIABLE.search(" ".join(call.args)):
        yield high("cloud_metadata", call.text)


def _fetcher(call: ShellCall) -> Iterator[RiskFinding]:
    urls = urls_of(call)
    hosts = [judge_host(url) for url in urls] or [NetworkHost.UNKNOWN]
    if all(host is NetworkHost.LOCAL for host in hosts):
        return
    destination = network_host_of(urls[0]) if urls else "a machine that a variable names"
    is_known_host = NetworkHost.ELSEWHERE in hosts or NetworkHost.METADATA in hosts
    finding = high if is_known_host else medium
    if _sends_file(call):
        yield finding("exfiltration", f"sends data to {destination}")
    elif call.tags & {SECRET, ENVIRONMENT} or _uses_secret(call):
        yield finding("exfiltration", f"sends a secret or the environment to {destination}")
    elif call.tags & _IDENTITY_TAGS:
        yield finding("exfiltration", f"tells {destination} of this machine")
    elif FILE in call.tags and any("?" in url.partition(OPAQUE)[0] for url in urls):
        yield finding("exfiltration", f"sends what is in a file to {destination}")
    elif is_known_host and (FILE in call.tags or _has_body(call)):
        yield medium("sends", f"sends to {destination}")


def _uses_secret(call: ShellCall) -> bool:
    """Return True if the URL or the body contains a secret of the environment. A secret in a header
    is not counted: that is what it is for."""
    bodies = (*urls_of(call), *_option_values(call, (*_BODY_OPTIONS, *_FORM_OPTIONS)))
    return any(is_secret_name(name) for text in bodies for name in UNSET_VARIABLE.findall(text))


def _option_values(call: ShellCall, names: tuple[str, ...]) -> list[str]:
    values = []
    for index, arg in enumerate(call.args):
        if arg in names and index + 1 < len(call.args):
            values.append(call.args[index + 1])
        for name in names:
            if name.startswith("--") and arg.startswith(name + "="):
                values.append(arg[len(name) + 1 :])
            elif not name.startswith("--") and arg.startswith(name) and len(arg) > 2:
                values.append(arg[2:])
    return values


def _option_value(call: ShellCall, names: tuple[str, ...]) -> str | None:
    return next(iter(_option_values(call, names)), None)


def _has_body(call: ShellCall) -> bool:
    names = (*_BODY_OPTIONS, *_FORM_OPTIONS, *_UPLOAD_OPTIONS, "--post-data", "--body-data")
    if _option_values(call, names):
        return True
    method = _option_value(call, ("-X", "--request", "--method"))
    return (method or "").upper() in {"POST", "PUT", "PATCH", "DELETE"}


def _sends_file(call: ShellCall) -> bool:
    if _option_values(call, ("--post-file", "--body-file")):
        return True
    if call.name in {"http", "https", "xh"} and (
        call.reads_from or call.stdin.tags & _SENSITIVE_TAGS
    ):
        return True
    uploads = [value for value in _option_values(call, _UPLOAD_OPTIONS) if value != "-"]
    bodies = [
        value
        for value in _option_values(call, _BODY_OPTIONS)
        if value.startswith("@") or "=@" in value
    ]
    bodies += [
        value for value in _option_values(call, _FORM_OPTIONS) if "=@" in value or "=<" in value
    ]
    if uploads or any(value not in {"@-", "@/dev/stdin"} for value in bodies):
        return True
    sends_stdin = bool(bodies) or "-" in _option_values(call, _UPLOAD_OPTIONS)
    return sends_stdin and LITERAL not in call.stdin.tags


def _raw(call: ShellCall) -> Iterator[RiskFinding]:
    if call.name == "socat":
        yield from _socat(call)
        return
    if call.has("ec", "--exec", "--sh-exec") and not call.has("z"):
        yield high("reverse_shell", call.text)
        return
    if call.has("z") or call.has("l", "--listen"):
        return
    host = call.operands[0] if call.operands else ""
    if judge_host(host) is NetworkHost.LOCAL and "." not in host and not host.isdigit():
        return
    if judge_host(host) is NetworkHost.LOCAL:
        return
    yield from _send_input(call, host)


def _socat(call: ShellCall) -> Iterator[RiskFinding]:
    text = call.text.lower()
    if "exec:" in text or "system:" in text:
        yield high("reverse_shell", call.text)
    elif re.search(r"(?:tcp\d?|udp\d?|openssl|ssl):(?!localhost|127\.)", text):
        yield from _send_input(call, re.sub(r".*?(?:tcp\d?|udp\d?|ssl):", "", text, count=1))


def _send_input(
    call: ShellCall, host: str, *, always_report: bool = False
) -> Iterator[RiskFinding]:
    """Yield findings about standard input that goes to `host`."""
    if judge_host(host) is NetworkHost.LOCAL:
        return
    sensitive_tags = call.stdin.tags & (_SENSITIVE_TAGS | _IDENTITY_TAGS | {DECODED})
    if sensitive_tags or call.reads_from or call.stdin.text is None:
        yield high("exfiltration", call.text)
    elif always_report or call.name in _RAW_CONNECTIONS:
        yield medium("raw_connection", call.text)


def _copy_findings(call: ShellCall) -> Iterator[RiskFinding]:
    operands = call.operands
    for index, operand in enumerate(operands):
        match = _REMOTE_PATH.match(operand)
        is_remote = match and judge_host(match[1]) is not NetworkHost.LOCAL
        if is_remote or operand.startswith(("rsync://", "sftp://")):
            is_destination = index == len(operands) - 1 and len(operands) > 1
            yield (high if is_destination else medium)(
                "exfiltration" if is_destination else "fetches", call.text
            )


def _git(call: ShellCall) -> Iterator[RiskFinding]:
    words = git_words(call)
    if words[:1] == ("push",):
        for word in words[1:]:
            if "://" in word or re.match(r"[\w.-]{1,64}@[\w.-]{1,253}:", word):
                if judge_host(word) is not NetworkHost.LOCAL:
                    yield high("exfiltration", call.text)
            elif word in {"--all", "--mirror"}:
                yield high("exfiltration", call.text)
    elif words[:2] in {("remote", "add"), ("remote", "set-url")}:
        yield medium("git_settings", call.text)
