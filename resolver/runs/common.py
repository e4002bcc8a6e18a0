"""Functions that all entry points share: the host, the id and trigger of a run, access to GitHub,
the log of warnings, and the signals that stop a run.
"""

import getpass
import hashlib
import logging
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import unquote, urlsplit

from resolver.config.settings import Settings
from resolver.errors import ForgeError, ResolverError, RunStopped, UsageError
from resolver.github import github_forge as github_forge_module
from resolver.github.client import accounts
from resolver.github.client.access import FixedToken
from resolver.github.events import parse
from resolver.github.events.dispatches import DispatchSource
from resolver.github.events.permission import IgnoredEvent
from resolver.github.events.starting_events import ListeningPolicy
from resolver.models.run import Actor, Command, Trigger, TriggerKind
from resolver.runs.wiring.sandbox import RunHost, access_of
from resolver.trace.plain import for_terminal

logger = logging.getLogger("resolver.runs.common")

MIN_SECRET_LENGTH = 12
"""Minimum length in characters of an environment variable's value that counts as a secret."""

SERVER_SECRETS = (
    "GITHUB_WEBHOOK_SECRET",
    "RESOLVER_WEBHOOK_SECRET",
    "RESOLVER_APP_CLIENT_SECRET",
)
"""Variables whose value is a secret, however short it is."""

_ISSUE_REFERENCE = re.compile(r"([\w.-]+/[\w.-]+)#(\d+)")
_ISSUE_PATH = re.compile(r"([\w.-]+/[\w.-]+)/(?:issues|pull)/(\d+)/?(?:[?#].*)?")


STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Signals that end a run."""


def open_host(environment: Mapping[str, str]) -> RunHost:
    """Return this machine, with the toolbox in the user's cache folder."""
    home = environment.get("HOME", "/")
    cache = environment.get("XDG_CACHE_HOME") or f"{home}/.cache"
    return RunHost(
        environment=environment,
        cache=Path(cache) / "resolver",
        secrets=environment_secrets(environment),
    )


def default_output(environment: Mapping[str, str], run: str) -> Path:
    """Return the default output folder of a run, below the user's state folder.

    It is outside of the current directory, so that no checkout gets files that nobody asked for.

    Source: https://specifications.freedesktop.org/basedir-spec/latest/
    """
    home = environment.get("HOME", "/")
    state = environment.get("XDG_STATE_HOME") or f"{home}/.local/state"
    return Path(state) / "resolver" / run


def run_id(key: str, now: datetime) -> str:
    """Return the id of a run: its time, which makes ids sortable, and a digest of its key."""
    return f"{now:%Y%m%d-%H%M%S}-{hashlib.sha256(key.encode()).hexdigest()[:6]}"


def read_login() -> str:
    """Return the login of the user at the terminal; "" if the machine does not know it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def parse_target(target: str, server_url: str) -> tuple[str, int] | None:
    """Return OWNER/NAME and number for `OWNER/NAME#N` or for the URL of an issue or a pull request
    on the GitHub at `server_url`; None for anything else.

    Raises UsageError for a URL of another host, because its path would name something else here.
    """
    match = _ISSUE_REFERENCE.fullmatch(target)
    if match:
        return match[1], int(match[2])
    if not re.match(r"https?://", target, re.IGNORECASE):
        return None
    configured_host, host = urlsplit(server_url).netloc.lower(), target.split("/")[2].lower()
    if host != configured_host:
        raise UsageError(
            f"{target} is at {host}, and Resolver is configured for {configured_host}",
            "give the URL of an issue there, or set GITHUB_SERVER_URL and GITHUB_API_URL to the "
            "GitHub that it is on",
        )
    match = _ISSUE_PATH.fullmatch(target.split("/", 3)[3] if target.count("/") > 2 else "")
    return (match[1], int(match[2])) if match else None


def command_line_trigger(
    repository: str, number: int, now: datetime, command: Command = Command.FIX
) -> Trigger:
    """Return the trigger of a request from the command line, about issue or pull request `number`
    of OWNER/NAME."""
    return Trigger(
        key=f"command_line:{repository.lower()}#{number}:{now:%Y%m%d%H%M%S%f}",
        kind=TriggerKind.COMMAND_LINE,
        repository=repository,
        number=number,
        actor=Actor(login=""),
        command=command,
        at=now,
    )


def github_forge(
    settings: Settings, repository: str, host: RunHost
) -> github_forge_module.GitHubForge:
    """Return the client for the GitHub of the settings, authenticated as the App or with the token.

    host: its redactors learn every token that is issued. Raises UsageError if there is no token.
    """
    source = host.tokens.source(settings, repository)
    if source is None:
        raise UsageError(
            "there is no GitHub token", "set GITHUB_TOKEN, or the id and key of a GitHub App"
        )
    return github_forge_module.GitHubForge(access_of(settings, source), repository)


def server_login(settings: Settings, host: RunHost) -> str:
    """Return the login that a server writes as: that of the settings, of their App, or of the
    account that their token belongs to.

    Without it, a server could not tell if an assignment is meant for it. Raises UsageError if
    GitHub does not say it.
    """
    if settings.bot_login:
        return settings.bot_login
    try:
        if settings.has_app:
            return host.tokens.app(settings, is_brief=True).page().login
        token = settings.github_token.get_secret_value() if settings.github_token else ""
        access = access_of(settings, FixedToken(token), harmless=True).with_short_timeouts()
        account = accounts.own_account(access)
    except ForgeError as error:
        raise UsageError(
            f"Resolver's own login is not known: {error.what}",
            "set RESOLVER_BOT_LOGIN, or start again when GitHub answers",
        ) from error
    if account is None:
        raise UsageError(
            "Resolver's own login is not known: the token belongs to no account",
            "set RESOLVER_BOT_LOGIN to the login that Resolver writes as",
        )
    return account.login


def listening_policy(settings: Settings) -> ListeningPolicy:
    """Return the settings that say whose events start work, and how they address Resolver."""
    return ListeningPolicy.model_validate(settings, from_attributes=True)


def trigger_for_target(
    settings: Settings,
    event: str,
    payload: Mapping[str, Any],
    own_login: str | None = None,
    arrival: DispatchSource | None = None,
) -> Trigger | IgnoredEvent:
    """Return the trigger that a GitHub event stands for, by the settings' mention, label and lists.

    own_login: Resolver's login, used if the settings do not have it.
    arrival: see `parse_github_event`.
    """
    policy = listening_policy(settings)
    if own_login and not settings.bot_login:
        policy = policy.model_copy(update={"bot_login": own_login})
    return parse.parse_github_event(event, payload, policy, arrival)


def own_login(
    settings: Settings, event: str, payload: Mapping[str, Any], host: RunHost
) -> str | None:
    """Return Resolver's login, asked from GitHub if the event can't be understood without it.

    Returns the login of the settings otherwise, and None if GitHub does not answer.
    """
    if settings.bot_login or not parse.needs_own_login(event, payload):
        return settings.bot_login
    repository = payload.get("repository")
    name = str(repository.get("full_name")) if isinstance(repository, Mapping) else ""
    try:
        return github_forge(settings, name, host).whoami()
    except ResolverError as error:
        logger.warning("Resolver's own login could not be determined: %s", error.what)
        return None


class RewritingFormatter(logging.Formatter):
    """Formats a log record by another formatter and passes the text through `rewrite`.

    rewrite: usually `Redactor.redact_text`, optionally followed by escaping for the log's reader.
    """

    def __init__(self, formatter: logging.Formatter, rewrite: Callable[[str], str]) -> None:
        super().__init__()
        self._formatter, self._rewrite = formatter, rewrite

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's message, traceback, stack and extras, rewritten."""
        try:
            text = self._formatter.format(record)
        except (TypeError, ValueError, KeyError):
            # The arguments don't match the message: the record is still worth keeping.
            text = f"{record.levelname} {record.msg} {record.args}"
        return self._rewrite(text)


@contextmanager
def filtered_log(settings: Settings, host: RunHost) -> Iterator[None]:
    """Write the warnings of all packages to stderr while the block runs.

    Secrets are redacted and control sequences removed, so that no text from outside controls a
    terminal or the Action's runner.
    """
    redactor = host.redactor(settings)
    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    formatter = logging.Formatter("%(levelname)s %(name)s: %(message)s")
    handler.setFormatter(
        RewritingFormatter(formatter, lambda text: for_terminal(redactor.redact_text(text)))
    )
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


def require_model(settings: Settings) -> None:
    """Raise UsageError if no model is set, before anything is cloned or started."""
    if not settings.model:
        raise UsageError(
            "no model is set",
            "give --model, or set LLM_MODEL (and LLM_API_KEY), for example "
            "LLM_MODEL=anthropic/claude-sonnet-4-5",
        )


def environment_secrets(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of environment variables whose names look like those of secrets.

    litellm reads keys such as ANTHROPIC_API_KEY from the environment itself, so the redactor has to
    know them. Short values are left out: PGPASSWORD=postgres is not secret, and redacting that word
    would damage ordinary text. So are paths of files: a folder's name is no secret.
    """
    name = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
    named = (
        value
        for variable, value in environment.items()
        if name.search(variable) and len(value) >= MIN_SECRET_LENGTH and not _is_file(value)
    )
    server = (environment.get(variable, "") for variable in SERVER_SECRETS)
    return (*named, *filter(None, server), *_telemetry_secrets(environment))


def _telemetry_secrets(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the headers for the OpenTelemetry collector and a password in its address, decoded as
    they are sent."""
    headers = environment.get("OTEL_EXPORTER_OTLP_HEADERS", "").split(",")
    values = [unquote(header.partition("=")[2].strip()) for header in headers]
    # `Authorization: Bearer TOKEN`: a log may quote the token alone.
    tokens = [value.split(" ")[-1] for value in values]
    password = urlsplit(environment.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")).password
    return tuple(filter(None, dict.fromkeys((*values, *tokens, unquote(password or "")))))


def _is_file(value: str) -> bool:
    try:
        return value.startswith(("/", "~", ".")) and Path(value).expanduser().is_file()
    except (OSError, RuntimeError, ValueError):
        return False  # too long for a path, such as a key


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """Turn SIGTERM, SIGINT and SIGHUP into RunStopped, so that a run ends with its log and a final
    comment.

    Only the first signal does so: a second SIGINT ends the process as usual. The yielded event is
    set by the first signal, for code that runs after RunStopped was caught.
    """
    stopping = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - signal handler
        stopping.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        # When a workflow is cancelled, GitHub's runner sends SIGINT and a few seconds later
        # SIGTERM. The second signal must not interrupt the final comment.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise RunStopped(
            f"the run was stopped by {signal.Signals(number).name}",
            "start it again; its work so far is in the event log",
        )

    previous_handlers = {number: signal.signal(number, stop) for number in STOP_SIGNALS}
    try:
        yield stopping
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)
