"""The checks of `resolver doctor OWNER/NAME`: the account and its permissions, and the repository's
settings and rules.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from resolver.config.documentation import DOCS
from resolver.config.settings import Settings, load_settings
from resolver.config.sources import REPOSITORY_FILE, repository_settings
from resolver.errors import ResolverError
from resolver.github.client.app import PERMISSIONS
from resolver.github.client.repository_access import RepositoryAccess
from resolver.github.events.app_manifest import EVENTS
from resolver.runs.common import github_forge
from resolver.runs.wiring.sandbox import RunHost, access_of

EXAMPLE_BRANCH = "agent/issue-1-doctor"
"""Example of the branches that Resolver pushes."""

REQUIRED_PERMISSIONS = ("contents", "issues", "pull_requests", "metadata")
"""Permissions that every run needs; the others are for optional features."""

BLOCKING_RULES: Mapping[str, str] = {
    "creation": "let Resolver's account bypass it",
    "update": "let Resolver's account bypass it",
    "pull_request": "exclude `agent/**` from the ruleset's branches",
    "required_signatures": "set `signed_commits: true`: the API signs the commits of an App",
}
"""The rules that stop every push to the agent's branches, and what to do about each."""

_LEVELS = ("none", "read", "write", "admin")


@dataclass(frozen=True)
class DoctorFinding:
    """The result of a check. `required` means that no run can start if the check fails."""

    good: bool
    what: str
    next_step: str | None = None
    required: bool = True

    @property
    def mark(self) -> str:
        """The result in one word: "ok", "missing", or "note" if it is not required."""
        return "ok" if self.good else ("missing" if self.required else "note")

    @property
    def advice(self) -> str | None:
        """The next step after a failed check, None if it passed."""
        return None if self.good else self.next_step


def check_finding(
    what: str,
    question: Callable[[], str | None],
    next_step: str | None = None,
    required: bool = True,
) -> DoctorFinding:
    """Run a check and return its result.

    `question` returns a text if the check passes and None if it fails. If it raises a
    ResolverError, the finding says why the check could not be done.
    """
    try:
        answer = question()
    except ResolverError as error:
        return DoctorFinding(False, f"{what}: {error.what}", error.next_step, required)
    return DoctorFinding(answer is not None, f"{what}: {answer or 'no'}", next_step, required)


def findings_until_error(
    what: str, findings: Iterator[DoctorFinding], required: bool = True
) -> Iterator[DoctorFinding]:
    """Yield the findings. If a ResolverError ends them, the last one says why they end.

    what: what they are about. required: of that last one.
    """
    try:
        yield from findings
    except ResolverError as error:
        yield DoctorFinding(False, f"{what}: {error.what}", error.next_step, required)


def check_app(settings: Settings, host: RunHost) -> Iterator[DoctorFinding]:
    """Check the GitHub App: its key, permissions and events. Raises ForgeError."""
    page = host.tokens.app(settings).page()
    yield DoctorFinding(True, f"GitHub App: {page.login} (id {page.id})")
    location = "on the App's page: Permissions & events; then its installations have to accept that"
    yield from _check_permissions("the App asks for", page.permissions, location)
    missing = [event for event in EVENTS if event not in page.events]
    yield DoctorFinding(
        not missing,
        f"events of the App: {'all' if not missing else 'not ' + ', '.join(missing)}",
        f"for `resolver serve`, subscribe to them {location}",
        required=False,
    )


def check_repository_for(
    settings: Settings, host: RunHost, repository: str
) -> Iterator[DoctorFinding]:
    """Check everything about one repository that a run depends on. Raises ForgeError."""
    source = host.tokens.source(settings, repository)
    assert source is not None
    login = github_forge(settings, repository, host).whoami()
    access = RepositoryAccess(access_of(settings, source), repository)
    yield DoctorFinding(True, f"account: {login}")
    if access.page.get("archived"):
        yield DoctorFinding(False, f"{repository} is archived", "unarchive it: it is read-only")
    if settings.has_app:
        yield from findings_until_error(
            "installation", _check_installation(settings, host, repository)
        )
    else:
        yield from _check_token(access, repository)
    yield check_finding(REPOSITORY_FILE, lambda: _read_settings_file(access))
    yield from findings_until_error("rules", _check_rules(access, settings), required=False)


def _check_permissions(
    holder: str, permissions: Mapping[str, str], location: str
) -> Iterator[DoctorFinding]:
    some = f"what some features need ({DOCS}/how-to/action.md)"
    for required, kind in ((True, "what every run needs"), (False, some)):
        missing = [
            f"{name}: {level}"
            for name, level in PERMISSIONS.items()
            if (name in REQUIRED_PERMISSIONS) is required
            and _LEVELS.index(permissions.get(name, "none")) < _LEVELS.index(level)
        ]
        what = f"{holder} {kind}" + (f", but not {', '.join(missing)}" if missing else "")
        yield DoctorFinding(not missing, what, f"add it {location}", required)


def _check_installation(
    settings: Settings, host: RunHost, repository: str
) -> Iterator[DoctorFinding]:
    permissions = host.tokens.app(settings).installation(repository).permissions
    location = "by agreeing to the App's new permissions under Settings, GitHub Apps, Configure"
    return _check_permissions(f"the installation on {repository} has", permissions, location)


def _check_token(access: RepositoryAccess, repository: str) -> Iterator[DoctorFinding]:
    """Check what a token that is not of an App may do, and what jobs of Actions may."""
    for permission, may in (
        ("contents: write", access.may_push),
        ("pull-requests: write", access.may_open_pulls),
    ):
        step = (
            f"give the token the permission `{permission}` on {repository}, and its account write "
            "access there"
        )
        yield check_finding(permission, lambda may=may: "allowed" if may() else None, step)  # type: ignore[misc]
    answers = {True: "yes", False: None, None: "unknown, only an administrator can read it"}
    yield check_finding(
        "Actions may open pull requests",
        lambda: answers[access.actions_may_open_pulls()],
        "for the Action with the job's own token, enable it: Settings, Actions, General, Allow "
        "GitHub Actions to create and approve pull requests",
        required=False,
    )


def _read_settings_file(access: RepositoryAccess) -> str:
    content = access.file(REPOSITORY_FILE)
    load_settings({}, {}, repository_settings(content))
    return "good" if content is not None else "not found, so the defaults apply"


def _check_rules(access: RepositoryAccess, settings: Settings) -> Iterator[DoctorFinding]:
    signed = {"required_signatures"} if settings.signed_commits else set()
    blocking = sorted((access.rules(EXAMPLE_BRANCH) & BLOCKING_RULES.keys()) - signed)
    if not blocking:
        yield DoctorFinding(True, "rules: none blocks branches like agent/...")
    for rule in blocking:
        what = f"rules: `{rule}` blocks branches like agent/..."
        yield DoctorFinding(False, what, BLOCKING_RULES[rule])
