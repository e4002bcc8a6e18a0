"""What all doors have in common: the machine, a run's id and trigger, the forge, the signals."""

import getpass
import hashlib
import logging
import re
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

from resolver.config.settings import Settings
from resolver.errors import ResolverError, RunStopped, UsageError
from resolver.github.client.failures import ServerTrouble
from resolver.github.context.issue_context import WantedContext
from resolver.github.events.dispatch import DispatchSource
from resolver.github.events.ignored import IgnoredEvent
from resolver.github.events.parse import needs_own_login, parse_github_event
from resolver.github.github_forge import GitHubForge
from resolver.models.run import Actor, Command, Trigger, TriggerKind
from resolver.runs.wiring.sandbox import RunHost
from resolver.runs.wiring.tokens import access_of
from resolver.security.logging import RewritingFilter
from resolver.trace.plain import for_terminal

logger = logging.getLogger("resolver.runs.common")

SHORTEST_SECRET = 12
"""Characters a value of the environment needs to count as a secret."""

_SHORT = re.compile(r"([\w.-]+/[\w.-]+)#(\d+)")
_PATH = re.compile(r"([\w.-]+/[\w.-]+)/(?:issues|pull)/(\d+)/?(?:[?#].*)?")


def open_host(environment: Mapping[str, str]) -> RunHost:
    """This machine, with the toolbox in the person's cache folder."""
    home = environment.get("HOME", "/")
    cache = environment.get("XDG_CACHE_HOME") or f"{home}/.cache"
    return RunHost(
        environment=environment,
        cache=Path(cache) / "resolver",
        secrets=environment_secrets(environment),
        notes=default_output(environment, "notes"),
    )


def default_output(environment: Mapping[str, str], run: str) -> Path:
    """Where a run's output goes unless told otherwise: the person's state folder, so that no
    checkout gets files it did not ask for.

    Source: https://specifications.freedesktop.org/basedir-spec/latest/
    """
    home = environment.get("HOME", "/")
    state = environment.get("XDG_STATE_HOME") or f"{home}/.local/state"
    return Path(state) / "resolver" / run


def run_id(key: str, now: datetime) -> str:
    """A run's id: sortable by time, told apart by the key."""
    return f"{now:%Y%m%d-%H%M%S}-{hashlib.sha256(key.encode()).hexdigest()[:6]}"


def read_login() -> str:
    """Who is at the terminal; "" where the machine does not know."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def parse_target(target: str, server_url: str) -> tuple[str, int] | None:
    """OWNER/NAME and number of `OWNER/NAME#N` or of the URL of an issue on the GitHub at
    `server_url`; None for anything else. Raises UsageError for a URL of another host: its path
    would name something else here."""
    short = _SHORT.fullmatch(target)
    if short:
        return short[1], int(short[2])
    if not re.match(r"https?://", target, re.IGNORECASE):
        return None
    wanted, host = urlsplit(server_url).netloc.lower(), target.split("/")[2].lower()
    if host != wanted:
        raise UsageError(
            f"{target} is at {host}, and Resolver is set to work at {wanted}",
            "give the URL of an issue there, or set GITHUB_SERVER_URL and GITHUB_API_URL to the "
            "GitHub that it is on",
        )
    found = _PATH.fullmatch(target.split("/", 3)[3] if target.count("/") > 2 else "")
    return (found[1], int(found[2])) if found else None


def command_line_trigger(
    repository: str, number: int, now: datetime, command: Command = Command.FIX
) -> Trigger:
    """A person with a token asks something of issue or pull request `number` of OWNER/NAME, now."""
    return Trigger(
        key=f"command_line:{repository.lower()}#{number}:{now:%Y%m%d%H%M%S%f}",
        kind=TriggerKind.COMMAND_LINE,
        repository=repository,
        number=number,
        actor=Actor(login=""),
        command=command,
        at=now,
    )


def github_forge(settings: Settings, repository: str, host: RunHost) -> GitHubForge:
    """The GitHub that the settings name, as the App or with the token that they have.

    host: its redactors know each token that is made. Raises UsageError with neither.
    """
    source = host.tokens.source(settings, repository)
    if source is None:
        raise UsageError(
            "there is no GitHub token", "set GITHUB_TOKEN, or the id and key of a GitHub App"
        )
    wanted = WantedContext(settings.pictures, settings.picture_hosts)
    return GitHubForge(access_of(settings, source), repository, wanted)


def app_login(settings: Settings, host: RunHost) -> dict[str, Any]:
    """As whom the settings' App writes, as the setting that says so; {} without an App.

    Raises ForgeError when GitHub does not take its key, and UsageError for half an App.
    """
    if settings.bot_login or not settings.has_app:
        return {}
    try:
        return {"bot_login": host.tokens.app(settings).page().login}
    except ServerTrouble as error:
        logger.warning("%s", error.what)  # each run asks again
        return {}


def trigger_for_target(
    settings: Settings,
    event: str,
    payload: Mapping[str, Any],
    own: str = "",
    arrival: DispatchSource | None = None,
) -> Trigger | IgnoredEvent:
    """What a GitHub event asks for, by the settings' mention, label and lists.

    own: our login where the settings don't say it; arrival: as in `parse_event`.
    """
    return parse_github_event(
        event,
        payload,
        mention=settings.mention,
        label=settings.label,
        bot_login=settings.bot_login or own,
        allowed_users=settings.allowed_users,
        denied_users=settings.denied_users,
        checks=settings.fix_failing_checks,
        review_teams=settings.review_teams,
        arrival=arrival,
    )


def own_login(settings: Settings, event: str, payload: Mapping[str, Any], host: RunHost) -> str:
    """Our login, asked of the forge where the event can't be understood without; else, and when
    it does not say, what the settings have."""
    if settings.bot_login or not needs_own_login(event, payload):
        return settings.bot_login
    repository = payload.get("repository")
    name = str(repository.get("full_name")) if isinstance(repository, Mapping) else ""
    try:
        return github_forge(settings, name, host).whoami()
    except ResolverError as error:
        logger.warning("our own login is not known: %s", error.what)
        return ""


@contextmanager
def filtered_log(settings: Settings, host: RunHost) -> Iterator[None]:
    """Warnings of all packages go to stderr without secrets and without control of a terminal or
    of the Action's runner."""
    redactor = host.redactor(settings)
    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    handler.addFilter(RewritingFilter(lambda text: for_terminal(redactor.redact_text(text))))
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


def require_model(settings: Settings) -> None:
    """Raise UsageError when no model is set, before anything is cloned or started."""
    if not settings.model:
        raise UsageError(
            "no model is set",
            "give --model, or set LLM_MODEL (and LLM_API_KEY), for example "
            "LLM_MODEL=anthropic/claude-sonnet-4-5",
        )


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """Turn SIGTERM, SIGINT and SIGHUP into Stopped, so that a run ends with its log and a word.

    Only the first one: a second SIGINT ends the process as usual. The event is set by it, for
    those who come after somebody has caught the Stopped.
    """
    stopping = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the handler's form
        stopping.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise RunStopped(
            f"the run was stopped by {signal.Signals(number).name}",
            "start it again: what it did so far is in the event log",
        )

    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def environment_secrets(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Values of the environment's variables that look like secrets by their names.

    litellm reads keys like ANTHROPIC_API_KEY by itself; they have to be known to the redactor.
    Short ones are left out: PGPASSWORD=postgres is no secret, and a word that changes may hold.
    """
    name = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
    return tuple(v for n, v in environment.items() if name.search(n) and len(v) >= SHORTEST_SECRET)
