"""The checks of `resolver doctor OWNER/NAME`, and the result of a check.

They cover the account, its permissions, and the repository's settings and rules.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass

from resolver.config.documentation import DOCS
from resolver.config.settings import Settings, load_settings
from resolver.config.sources import REPOSITORY_FILE, repository_settings
from resolver.errors import ResolverError
from resolver.github.client.app import PERMISSIONS, AppAccess
from resolver.github.client.repository_access import RepositoryAccess
from resolver.github.events.app_manifest import EVENTS
from resolver.runs.common import github_forge
from resolver.runs.wiring.sandbox import RunHost, access_of


@dataclass(frozen=True)
class DoctorFinding:
    """The result of a check. `required` means that no run can start if the check fails."""

    good: bool
    what: str
    next_step: str = ""
    required: bool = True

    @property
    def mark(self) -> str:
        """The result in one word: "ok", "missing", or "note" if it is not required."""
        return "ok" if self.good else ("missing" if self.required else "note")

    @property
    def advice(self) -> str:
        """The next step after a failed check, "" if it passed."""
        return "" if self.good else self.next_step

    def as_json(self) -> dict[str, str | bool]:
        """Return the finding as JSON."""
        return {**asdict(self), "next_step": self.advice}


def check_finding(
    what: str, question: Callable[[], str | None], required: bool = True
) -> DoctorFinding:
    """Run a check and return its result.

    `question` returns a text if the check passes and None if it fails. If it raises a
    ResolverError, the finding says why the check could not be done.
    """
    try:
        answer = question()
    except ResolverError as error:
        return DoctorFinding(False, f"{what}: {error.what}", error.next_step, required)
    return DoctorFinding(answer is not None, f"{what}: {answer or 'no'}", required=required)


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


EXAMPLE_BRANCH = "agent/issue-1-doctor"
"""Example of the branches that Resolver pushes."""

REQUIRED_PERMISSIONS = ("contents", "issues", "pull_requests", "metadata")
"""Permissions that every run needs; the others are for optional features."""

_LEVELS = ("none", "read", "write", "admin")

_RULES: Mapping[str, tuple[str, str, bool]] = {
    "creation": (
        "a rule forbids creating branches like agent/...",
        "let Resolver's account bypass it",
        True,
    ),
    "update": (
        "a rule forbids pushing to branches like agent/...",
        "let Resolver's account bypass it",
        True,
    ),
    "pull_request": (
        "a rule requires a pull request for each push to branches like agent/...",
        "exclude `agent/**` from the ruleset's branches",
        True,
    ),
    "required_signatures": (
        "a rule requires signed commits on branches like agent/...",
        "set `signed_commits: true`: commits made by the API as an App are signed",
        True,
    ),
    "required_linear_history": (
        "a rule requires a linear history on branches like agent/...",
        "merges of the base into the agent's branch will be refused there",
        False,
    ),
    "deletion": (
        "a rule forbids deleting branches like agent/...",
        "branches of interrupted attempts stay until a person removes them",
        False,
    ),
}
"""The effect of a rule on the agent's branches, how to fix it, and if it blocks every run."""


def check_app(settings: Settings, host: RunHost) -> Iterator[DoctorFinding]:
    """Check the GitHub App: its key, permissions, events and webhook."""
    return findings_until_error("GitHub App", _check_app(settings, host))


def _check_app(settings: Settings, host: RunHost) -> Iterator[DoctorFinding]:
    app = host.tokens.app(settings)
    page = app.page()
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
    yield from findings_until_error("webhook of the App", _check_webhook(app), required=False)


def _check_webhook(app: AppAccess) -> Iterator[DoctorFinding]:
    hook = app.webhook()
    problems = [
        problem
        for is_present, problem in (
            (not hook.url, "it has no address"),
            (hook.content_type != "json", "its content type is not application/json"),
            (hook.insecure_ssl not in {"0", 0}, "it does not check the server's certificate"),
            (hook.secret is None, "it has no secret"),
        )
        if is_present
    ]
    yield DoctorFinding(
        not problems,
        f"webhook of the App: {'; '.join(problems) if problems else hook.url}",
        f"for `resolver serve`, correct it on the App's page; see {DOCS}/how-to/server.md",
        required=False,
    )


def _check_permissions(
    holder: str, permissions: Mapping[str, str], location: str
) -> Iterator[DoctorFinding]:
    for required in (True, False):
        missing = [
            f"{name}: {level}"
            for name, level in PERMISSIONS.items()
            if (name in REQUIRED_PERMISSIONS) is required
            and _LEVELS.index(permissions.get(name, "none")) < _LEVELS.index(level)
        ]
        some = f"what some features need ({DOCS}/how-to/action.md)"
        kind = "what every run needs" if required else some
        yield DoctorFinding(
            not missing,
            f"{holder} {kind}" + (f", but not {', '.join(missing)}" if missing else ""),
            f"add it {location}",
            required,
        )


def check_repository_for(
    settings: Settings, host: RunHost, repository: str
) -> Iterator[DoctorFinding]:
    """Check everything about one repository that a run depends on."""
    return findings_until_error(repository, _check_repository(settings, host, repository))


def _check_repository(
    settings: Settings, host: RunHost, repository: str
) -> Iterator[DoctorFinding]:
    source = host.tokens.source(settings, repository)
    assert source is not None
    forge = github_forge(settings, repository, host)
    login = forge.whoami()
    access = RepositoryAccess(access_of(settings, source), repository)
    page = access.page
    yield DoctorFinding(True, f"account: {login}")
    if page.get("archived"):
        yield DoctorFinding(False, f"{repository} is archived", "unarchive it: it is read-only")
    yield from findings_until_error(
        "installation", _check_rights(settings, host, access, repository)
    )
    yield _check_settings_file(access)
    yield from findings_until_error("rules", _check_rules(access, settings), required=False)
    if not settings.has_app:
        yield _check_actions(access)


def _check_rights(
    settings: Settings, host: RunHost, access: RepositoryAccess, repository: str
) -> Iterator[DoctorFinding]:
    """Check what the token may do, in the way that is possible for a token of its kind."""
    if settings.has_app:
        permissions = host.tokens.app(settings).installation(repository).permissions
        location = "by agreeing to the App's new permissions under Settings, GitHub Apps, Configure"
        yield from _check_permissions(
            f"the installation on {repository} has", permissions, location
        )
        return
    scopes = access.scopes
    if scopes is not None:
        is_private = bool(access.page.get("private"))
        is_sufficient = "repo" in scopes or (not is_private and "public_repo" in scopes)
        yield DoctorFinding(
            is_sufficient,
            f"scopes of the token: {', '.join(scopes) or 'none'}",
            "give it `repo`, or better: use a fine-grained token or an App",
        )
    for permission, question in (
        ("contents: write", access.may_push),
        ("pull-requests: write", access.may_open_pulls),
    ):
        finding = check_finding(permission, lambda q=question: "allowed" if q() else None)  # type: ignore[misc]
        fix = finding.next_step or (
            f"give the token the permission `{permission}` on {repository}, and its account write "
            "access there"
        )
        yield DoctorFinding(finding.good, finding.what, fix)


def _check_settings_file(access: RepositoryAccess) -> DoctorFinding:
    def read() -> str:
        content = access.file(REPOSITORY_FILE)
        load_settings({}, {}, repository_settings(content))
        return "good" if content is not None else "not found, so the defaults apply"

    return check_finding(REPOSITORY_FILE, read)


def _check_rules(access: RepositoryAccess, settings: Settings) -> Iterator[DoctorFinding]:
    rules = access.rules(EXAMPLE_BRANCH)
    if settings.signed_commits:
        rules -= {"required_signatures"}
    blocking = sorted(rules & set(_RULES))
    if not blocking:
        yield DoctorFinding(True, "rules: none blocks branches like agent/...")
    for name in blocking:
        what, fix, required = _RULES[name]
        yield DoctorFinding(False, f"rules: {what}", fix, required)


def _check_actions(access: RepositoryAccess) -> DoctorFinding:
    """Check the setting that most first runs of the Action fail at."""

    def may_open() -> str | None:
        allowed = access.actions_may_open_pulls()
        return {True: "yes", False: None}.get(allowed, "unknown, only an administrator can read it")  # type: ignore[arg-type]

    finding = check_finding("Actions may open pull requests", may_open)
    fix = (
        "for the Action with the job's own token, enable it: Settings, Actions, General, Allow "
        "GitHub Actions to create and approve pull requests"
    )
    return DoctorFinding(finding.good, finding.what, finding.next_step or fix, required=False)
