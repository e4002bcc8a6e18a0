"""The checks of `resolver doctor OWNER/NAME`, and the result of a check.

They cover the account, its permissions, the repository's settings and rules, and whether CI runs on
what the agent pushes.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass

from resolver.config.setting_names import repository_warnings
from resolver.config.settings import REPOSITORY_FILE, Settings, load_settings, repository_settings
from resolver.errors import ResolverError
from resolver.github.client.app import EVENTS, PERMISSIONS, AppAccess
from resolver.github.client.standing import RepositoryAccess
from resolver.github.context.workflows import AgentJob, WorkflowFile
from resolver.github.events.checks import CHECK_EVENTS
from resolver.github.github_forge import ACTIONS_LOGIN
from resolver.runs.common import github_forge
from resolver.runs.wiring.sandbox import RunHost
from resolver.runs.wiring.tokens import access_of


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


BRANCH = "agent/issue-1-doctor"
"""Example of the branches that Resolver pushes."""

NEEDED = ("contents", "issues", "pull_requests", "metadata")
"""Permissions that every run needs; the others are for optional features."""

NEEDED_WRITE = ("contents", "issues", "pull-requests")
READ_OF_CHECKS = ("checks", "statuses", "actions")
"""Permissions that a job needs to do its work, and those for reading failing checks."""

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
    try:
        app = host.tokens.app(settings)
        page = app.page()
    except ResolverError as error:
        yield DoctorFinding(False, f"GitHub App: {error.what}", error.next_step)
        return
    yield DoctorFinding(True, f"GitHub App: {page.login} (id {page.id})")
    where = "on the App's page: Permissions & events; then its installations have to accept that"
    yield from _permissions("the App asks for", page.permissions, where)
    missing = [event for event in EVENTS if event not in page.events]
    yield DoctorFinding(
        not missing,
        f"events of the App: {'all' if not missing else 'not ' + ', '.join(missing)}",
        f"for `resolver serve`, subscribe to them {where}",
        required=False,
    )
    yield from _webhook(app)


def _webhook(app: AppAccess) -> Iterator[DoctorFinding]:
    try:
        hook = app.webhook()
    except ResolverError as error:
        yield DoctorFinding(
            False, f"webhook of the App: {error.what}", error.next_step, required=False
        )
        return
    wrong = [
        words
        for is_wrong, words in (
            (not hook.url, "it has no address"),
            (hook.content_type != "json", "its content type is not application/json"),
            (hook.insecure_ssl not in {"0", 0}, "it does not check the server's certificate"),
            (hook.secret is None, "it has no secret"),
        )
        if is_wrong
    ]
    yield DoctorFinding(
        not wrong,
        f"webhook of the App: {'; '.join(wrong) if wrong else hook.url}",
        "for `resolver serve`, correct it on the App's page; see docs/server.md",
        required=False,
    )


def _permissions(what: str, given: Mapping[str, str], where: str) -> Iterator[DoctorFinding]:
    for required in (True, False):
        lacking = [
            f"{name}: {level}"
            for name, level in PERMISSIONS.items()
            if (name in NEEDED) is required
            and _LEVELS.index(given.get(name, "none")) < _LEVELS.index(level)
        ]
        kind = "what every run needs" if required else "what some features need (docs/action.md)"
        yield DoctorFinding(
            not lacking,
            f"{what} {kind}" + (f", but not {', '.join(lacking)}" if lacking else ""),
            f"add it {where}",
            required,
        )


def check_repository_for(
    settings: Settings, host: RunHost, repository: str
) -> Iterator[DoctorFinding]:
    """Check everything about one repository that a run depends on."""
    try:
        source = host.tokens.source(settings, repository)
        assert source is not None
        forge = github_forge(settings, repository, host)
        login = forge.whoami()
        standing = RepositoryAccess(access_of(settings, source), repository)
        page = standing.page
    except ResolverError as error:
        yield DoctorFinding(False, f"{repository}: {error.what}", error.next_step)
        return
    yield DoctorFinding(True, f"account: {login}")
    if page.get("archived"):
        yield DoctorFinding(False, f"{repository} is archived", "unarchive it: it is read-only")
    yield from _rights(settings, host, standing, repository)
    yield _settings_file(standing)
    yield from _rules(standing, settings)
    yield from _ci(standing, login)


def _rights(
    settings: Settings, host: RunHost, standing: RepositoryAccess, repository: str
) -> Iterator[DoctorFinding]:
    """Check what the token may do, in the way that is possible for a token of its kind."""
    if settings.has_app:
        try:
            granted = host.tokens.app(settings).installation(repository).permissions
        except ResolverError as error:
            yield DoctorFinding(False, f"installation: {error.what}", error.next_step)
            return
        where = "by agreeing to the App's new permissions under Settings, GitHub Apps, Configure"
        yield from _permissions(f"the installation on {repository} has", granted, where)
        return
    scopes = standing.scopes
    if scopes is not None:
        private = bool(standing.page.get("private"))
        good = "repo" in scopes or (not private and "public_repo" in scopes)
        yield DoctorFinding(
            good,
            f"scopes of the token: {', '.join(scopes) or 'none'}",
            "give it `repo`, or better: use a fine-grained token or an App",
        )
    for permission, question in (
        ("contents: write", standing.may_push),
        ("pull-requests: write", standing.may_open_pulls),
    ):
        finding = check_finding(permission, lambda q=question: "allowed" if q() else None)  # type: ignore[misc]
        fix = finding.next_step or (
            f"give the token the permission `{permission}` on {repository}, and its account write "
            "access there"
        )
        yield DoctorFinding(finding.good, finding.what, fix)


def _settings_file(standing: RepositoryAccess) -> DoctorFinding:
    def read() -> str:
        content = standing.file(REPOSITORY_FILE)
        given = repository_settings(content)
        load_settings({}, {}, given)
        old = repository_warnings(REPOSITORY_FILE, given)
        told = "; ".join(each.removeprefix(f"{REPOSITORY_FILE}: ") for each in old)
        return told or ("good" if content is not None else "not found, so the defaults apply")

    return check_finding(REPOSITORY_FILE, read)


def _rules(standing: RepositoryAccess, settings: Settings) -> Iterator[DoctorFinding]:
    try:
        found = standing.rules(BRANCH)
    except ResolverError as error:
        yield DoctorFinding(False, f"rules: {error.what}", error.next_step, required=False)
        return
    if settings.signed_commits:
        found -= {"required_signatures"}
    hindering = sorted(found & set(_RULES))
    if not hindering:
        yield DoctorFinding(True, "rules: none blocks branches like agent/...")
    for name in hindering:
        what, fix, required = _RULES[name]
        yield DoctorFinding(False, f"rules: {what}", fix, required)


def _ci(standing: RepositoryAccess, login: str) -> Iterator[DoctorFinding]:
    """Check that CI runs on what the agent pushes, and check the jobs that run the agent."""
    try:
        workflows = standing.workflows()
    except ResolverError as error:
        yield DoctorFinding(False, f"workflows: {error.what}", error.next_step, required=False)
        return
    checks = [w.path for w in workflows if w.checks_changes]
    agents = [(w, job) for w in workflows for job in w.agents]
    if login == ACTIONS_LOGIN:
        yield _no_ci("this token is the job's own", checks)
    elif not agents:
        yield _seen(checks)
    for workflow, job in agents:
        yield from _agent_job(standing, workflow, job, checks)


def _seen(checks: list[str]) -> DoctorFinding:
    return DoctorFinding(
        bool(checks),
        f"CI on the agent's commits: {', '.join(checks) or 'no workflow starts on a pull request'}",
        "a workflow with `on: pull_request` would check what the agent proposes",
        required=False,
    )


def _no_ci(why: str, checks: list[str]) -> DoctorFinding:
    what = f"{why}, so GitHub starts no workflow on what the agent pushes"
    return DoctorFinding(
        not checks,
        f"CI on the agent's commits: {what}" if checks else "CI: there is no workflow to start",
        "give the Action an App (app-id, app-private-key) or a personal token (github-token); or "
        "close and reopen each pull request",
        required=False,
    )


def _features(workflow: WorkflowFile, job: AgentJob, named: str) -> Iterator[DoctorFinding]:
    """Check that the features that a job enables have the permissions and events they need."""
    fixes = job.settings.get("fix_failing_checks") or "none"
    unread = [f"{name}: read" for name in job.lacks("read", *READ_OF_CHECKS)]
    if not (job.own_token or job.settings.get("args")):
        yield DoctorFinding(
            not unread,
            f"failing checks can be read by {named}"
            + (f": not {', '.join(unread)}" * bool(unread)),
            f"add to the job's `permissions:` {', '.join(unread)}",
            required=False,
        )
    heard = workflow.events & CHECK_EVENTS
    listens = all(e in job.condition for e in heard) if job.condition else True
    if fixes != "none":
        yield DoctorFinding(
            bool(heard) and listens,
            f"failing checks (`fix-failing-checks: {fixes}`) reach {named}: "
            + ("yes" if heard and listens else "its `if:` blocks them" if heard else "no event"),
            f"`resolver init --fix-checks {fixes}` writes `on: workflow_run` and its part of the "
            "job's `if:`",
            required=False,
        )
    elif heard:
        yield DoctorFinding(
            False, f"failing checks start nothing: {named} has no `fix-failing-checks`",
            "give the step `fix-failing-checks: own`, `default-branch` or `all`, or take "
            f"{', '.join(sorted(heard))} out of `on:`", required=False,
        )  # fmt: skip
    if fixes in {"own", "all"} and not job.own_token:
        yield DoctorFinding(
            False, f"failing checks of its own pull requests never reach {named}: GitHub starts no "
            "CI on what the job's own token pushes",
            "give the Action an App (app-id, app-private-key) or a personal token (github-token)",
            required=False,
        )  # fmt: skip
    if job.settings.get("dashboard", "").lower() in {"true", "1", "yes", "on"}:
        ticks = workflow.starts_on_edits and (not job.condition or "'edited'" in job.condition)
        yield DoctorFinding(
            ticks,
            f"ticks on the dashboard reach {named}: {'yes' if ticks else 'no'}",
            "`resolver init --dashboard` writes `edited` to `on: issues`, and its part of the "
            "job's `if:`; without them the dashboard only shows",
            required=False,
        )


def _agent_job(
    standing: RepositoryAccess, workflow: WorkflowFile, job: AgentJob, checks: list[str]
) -> Iterator[DoctorFinding]:
    named = f"job {job.name} of {workflow.path}"
    closes = job.settings.get("close") == "true"
    if not closes:
        yield from _features(workflow, job, named)
    if job.own_token:
        yield _seen(checks)
        return
    needed = [name for name in NEEDED_WRITE if not (closes and name == "contents")]
    lacking = [f"{name}: write" for name in job.lacks("write", *needed)]
    yield DoctorFinding(
        not lacking,
        f"permissions of {named}" + (f": not {', '.join(lacking)}" if lacking else ""),
        "add them to the job's `permissions:`",
    )
    if closes:
        return
    yield _no_ci(f"{named} works with the job's own token", checks)

    def may_open() -> str | None:
        may = standing.actions_may_open_pulls()
        return {True: "yes", False: None}.get(may, "unknown, only an administrator can read it")  # type: ignore[arg-type]

    finding = check_finding("Actions may open pull requests", may_open)
    fix = "enable it: Settings, Actions, General, Allow GitHub Actions to create and approve " + (
        "pull requests"
    )
    yield DoctorFinding(finding.good, finding.what, finding.next_step or fix)
