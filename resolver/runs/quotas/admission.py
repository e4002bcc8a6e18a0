"""Reserves a run's quota in the ledger before its work, and records its cost when it has ended.

An error of the ledger never fails a run; it is logged as a warning in the job's log.
"""

import hashlib
import logging
import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from resolver.config.settings import Settings
from resolver.errors import (
    ForgeError,
    LeaseLost,
    LogError,
    QuotaReached,
    ResolverError,
    RunStopped,
    WorkspaceError,
)
from resolver.events.run_log import cost_of_run
from resolver.github.client.snapshot import RepositorySnapshot
from resolver.github.comments.report import Report
from resolver.github.events.payloads import IssueComment
from resolver.github.events.quota_decision import (
    QuotaBound,
    QuotaExceeded,
    QuotaLimits,
    QuotaRequest,
    QuotaUse,
    decide_quota,
    measure_quota_use,
)
from resolver.github.events.quota_ledger import (
    MAX_DOLLARS,
    Answer,
    Change,
    LedgerRun,
    LedgerVersion,
    QuotaLedger,
    day_of,
    normalize_login,
    read_ledger,
)
from resolver.github.github_forge import GitHubForge
from resolver.github.text.markers import Ending
from resolver.models.run import Command, Trigger
from resolver.runs.stages import AcceptedRun, RunRequest, StageValues
from resolver.runs.wiring.knowledge import ORGANIZATION_FOLDERS
from resolver.storage.ledger_ref import FILE, REF, RETRIES, AccompanyingPush, LedgerRef
from resolver.storage.run_refs import log_commit, obsolete_logs, runs_of_issue

logger = logging.getLogger("resolver.runs.quotas")

QUOTA_COMMANDS = frozenset(Command) - {Command.HELP, Command.STOP, Command.PAUSE, Command.PUBLISH}
"""The commands that use a model. The others cost nothing and are never refused because of a
quota."""

MAX_CONVERSATION_RUNS, MAX_USER_RUNS, MAX_REPOSITORY_RUNS = 20, 50, 200
"""Maximum number of runs in a day: on one issue or pull request, of one account, on a repository.
They end what goes round in circles, also with a model that costs nothing."""

MAX_RESERVATION_TIME = timedelta(days=7)
"""Longest time that a reservation is held."""

_QUOTA_COMMENT = re.compile(r"<!-- resolver:run key=[0-9a-f]{40} ending=ceiling\b")
"""Marker of a comment that reports a reached quota."""


def quota_limits_of(settings: Settings) -> QuotaLimits:
    """Return the limits that the operator has set.

    The repository's own settings file is not used: these limits bound what its people may spend.
    """
    budget = settings.max_budget
    return QuotaLimits(
        thread=QuotaBound(MAX_CONVERSATION_RUNS, 10 * budget),
        user=QuotaBound(MAX_USER_RUNS, 20 * budget),
        repository=QuotaBound(MAX_REPOSITORY_RUNS, settings.daily_budget or 50 * budget),
    )


def ledger_for_run(request: RunRequest, settings: Settings) -> LedgerRef:
    """Return the ledger of the repository that a run works on."""
    url = settings.clone_url(request.trigger.repository)
    seconds = min(settings.pace.retries.seconds, RETRIES.seconds)
    retries = RETRIES.lasting(seconds)
    return LedgerRef(url, lambda: request.credential(settings), request.now, retries)


def _change_ledger(
    request: RunRequest,
    settings: Settings,
    change: Change[Answer],
    known: LedgerVersion | None,
    accompanying: AccompanyingPush,
) -> tuple[Answer, LedgerVersion | None]:
    """Change the ledger in the server's database, or else in the repository, as
    `LedgerRef.change` does. Only the one in the repository has a version."""
    if request.quota_table is None:
        return ledger_for_run(request, settings).change(change, known, accompanying)
    # Another process may continue the run, and records it.
    request.host.require_lease()
    return request.quota_table.change(request.trigger.repository, request.now(), change), None


def ledger_key(key: str) -> str:
    """Return the digest of a trigger's key that identifies the request in the ledger."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def read_refs(request: RunRequest, forge: GitHubForge | None) -> RepositorySnapshot | None:
    """Return the refs of the repository that the run works on, None if git has to read them."""
    if forge is None:
        return None
    log_prefix = runs_of_issue(request.trigger.subject or 0)
    return forge.snapshot(REF, FILE, log_prefix, tuple(ORGANIZATION_FOLDERS))


def reserve_quota(
    request: RunRequest,
    settings: Settings,
    forge: GitHubForge | None,
    snapshot: RepositorySnapshot | None = None,
    limits: QuotaLimits | None = None,
) -> AcceptedRun:
    """Reserve the run's quota, in the server's database or in the repository.

    snapshot: the repository's refs, if they were read. limits: None for those of the settings.

    Raises QuotaReached, marked silent if the conversation was notified today already.
    """
    limits = limits or quota_limits_of(settings)
    if forge is None or not _has_quota(request):
        return AcceptedRun(snapshot=snapshot)
    now = request.now()
    quota_request = _quota_request(request, settings, forge)

    # Deciding and writing are one step: if another run is reserved first, `reserve` is called
    # again with that run's entry in the ledger, so two runs can't both take the last of a quota.
    def reserve(ledger: QuotaLedger) -> tuple[QuotaLedger | None, _LedgerDecision]:
        decision = decide_quota(ledger, quota_request, limits, now)
        if isinstance(decision, QuotaExceeded):
            return None, (decision, None)
        entry = _entry(request, settings, quota_request, decision, ledger, now)
        return ledger.with_run(entry), (decision, entry)

    version, known = None, _ledger_from_snapshot(snapshot, now)
    try:
        (decision, entry), version = _change_ledger(
            request, settings, reserve, known, AccompanyingPush()
        )
    except (WorkspaceError, ForgeError) as error:
        # Without write access the decision is made from what can be read.
        logger.warning("the quota ledger could not be updated: %s", error.what)
        ledger = _read_or_unreadable(ledger_for_run(request, settings))
        decision, entry = decide_quota(ledger, quota_request, limits, now), None
    if isinstance(decision, QuotaExceeded):
        reached = QuotaReached(decision.what, decision.next_step)
        reached.is_silent = _was_notified_today(request, forge, now)
        raise reached
    return AcceptedRun(entry, decision, version if entry else None, snapshot)


_LedgerDecision = tuple[float | QuotaExceeded, LedgerRun | None]
"""A decision, and the entry of the run if it is admitted and written."""


def _ledger_from_snapshot(
    snapshot: RepositorySnapshot | None, now: datetime
) -> LedgerVersion | None:
    """Return the ledger in the snapshot, None if it has to be fetched.

    An outdated one does no harm: the push that names its tip is refused then.
    """
    if snapshot is None or not snapshot.tip:
        return None
    if not snapshot.ref_tip:
        return LedgerVersion(QuotaLedger())
    if snapshot.content is None:
        return None
    return LedgerVersion(read_ledger(snapshot.content.encode(), now), snapshot.ref_tip)


@dataclass(frozen=True)
class RecordedCost:
    """What was recorded of a run that has ended.

    is_log_archived: True if its log was pushed with the ledger. quota_use: what today's runs have
    used of the quotas of its conversation, its requester and the repository.
    """

    is_log_archived: bool = False
    quota_use: tuple[QuotaUse, ...] = ()


def record_cost(values: StageValues, report: Report) -> RecordedCost:
    """Record the cost and the ending of the run in the server's database, or in the repository's
    ledger and archive its log with it. Raises nothing but LeaseLost.
    """
    request, settings = values.request, values.settings
    reservation = values.accepted.reservation if values.accepted else None
    # A signal may have interrupted `reserve_quota` after the reservation was pushed and before it
    # was returned; a run that ends before its work may have had an earlier attempt.
    is_stopped = report.ending is Ending.STOPPED or request.ended_by is not None
    was_interrupted = values.accepted is None and is_stopped
    if reservation is None and not (was_interrupted and _has_quota(request)):
        return RecordedCost()
    cost, unpriced = 0.0, 0
    if values.log is not None:
        cost, unpriced = cost_of_run(values.log.state.events, request.run)
    key, now = ledger_key(request.trigger.key), request.now()

    def end(ledger: QuotaLedger) -> tuple[QuotaLedger | None, tuple[QuotaUse, ...]]:
        with_run = ledger if ledger.run_of(key) or not reservation else ledger.with_run(reservation)
        ended = end_entry(with_run, key, request.run, cost, unpriced, report.ending.value)
        thread, user = request.trigger.subject or 0, normalize_login(request.trigger.actor.login)
        limits, latest = quota_limits_of(settings), ended or ledger
        return ended, measure_quota_use(latest.runs, limits, [thread], [user], now)

    try:
        version_before = values.accepted.ledger if values.accepted else None
        log_push = _log_push(values)
        use, version = _change_ledger(request, settings, end, version_before, log_push)
    except LeaseLost:
        raise
    except (ResolverError, RunStopped) as error:
        logger.warning(
            "the cost of run %s could not be recorded in the quota ledger: %s",
            request.run,
            error.what,
        )
        return RecordedCost()
    # Without a change of the ledger, nothing was pushed.
    is_pushed = version is not None and version.pushed
    return RecordedCost(is_pushed and bool(log_push.commits), use)


def end_entry(
    ledger: QuotaLedger, key: str, run: str, cost: float, unpriced: int, ending: str
) -> QuotaLedger | None:
    """Return the ledger with the end and the cost of a run; None if it has no entry of this run, or
    one that has ended already.

    A change of the ledger may be repeated because its answer was lost, and must not count twice.
    """
    entry = ledger.run_of(key)
    if entry is None or entry.ending or entry.run != run:
        return None
    changes = {
        "ending": ending,
        "reserved": 0.0,
        "cost": min(entry.cost + cost, MAX_DOLLARS),
        "unpriced": entry.unpriced + unpriced,
    }
    return ledger.with_run(entry.model_copy(update=changes))


def _log_push(values: StageValues) -> AccompanyingPush:
    """Return the push that archives the run's log and removes old ones; an empty one if it is not
    archived."""
    request = values.current_request
    issue, snapshot = request.trigger.subject, values.accepted.snapshot if values.accepted else None
    if not request.archives_log or values.log is None or issue is None or snapshot is None:
        return AccompanyingPush()
    try:
        commit = log_commit(request.output.folder, issue, request.run)
    except LogError as error:
        logger.info("%s", error.what)  # archiving it by itself will say so
        return AccompanyingPush()
    obsolete = obsolete_logs(issue, request.run, snapshot.ref_names)
    return AccompanyingPush((commit,), obsolete)


def _has_quota(request: RunRequest) -> bool:
    """Return True if quotas apply to the request."""
    return request.publish and request.trigger.command in QUOTA_COMMANDS


def _quota_request(request: RunRequest, settings: Settings, forge: GitHubForge) -> QuotaRequest:
    trigger = request.trigger
    person_commented_at, exchanges = None, 0
    if trigger.actor.is_bot and trigger.number is not None:
        person_commented_at, exchanges = _measure_bot_chain(trigger, forge)
    return QuotaRequest(
        key=ledger_key(trigger.key),
        thread=trigger.subject or 0,
        user=normalize_login(trigger.actor.login),
        bot=trigger.actor.is_bot,
        max_cost=settings.max_budget,
        resumed_run=request.run if request.resume else None,
        person_commented_at=person_commented_at,
        exchanges=exchanges,
    )


def _measure_bot_chain(trigger: Trigger, forge: GitHubForge) -> tuple[datetime | None, int]:
    """Return when a person last commented, and how many comments Resolver has written since.

    Bots that answer each other would continue forever. Raises ForgeError.
    """
    assert trigger.number is not None
    own_login, exchanges = normalize_login(forge.whoami()), 0
    for comment in forge.recent_comments(trigger.number):
        is_own = _is_by(comment, own_login)
        if comment.user is not None and comment.user.type == "User" and not is_own:
            return comment.created_at, exchanges
        exchanges += is_own
    return None, exchanges


def _is_by(comment: IssueComment, login: str) -> bool:
    return comment.user is not None and normalize_login(comment.user.login) == login


def _entry(
    request: RunRequest,
    settings: Settings,
    quota_request: QuotaRequest,
    remaining: float,
    ledger: QuotaLedger,
    now: datetime,
) -> LedgerRun:
    """Return the run's entry. A request that is started again keeps the cost of its earlier
    attempts."""
    existing = ledger.run_of(quota_request.key)
    is_restart = existing is not None and existing.run != quota_request.resumed_run
    # A request that is started again on another day counts for that day.
    started_at = existing.at if existing and day_of(existing.at) == day_of(now) else now
    return LedgerRun(
        key=quota_request.key,
        run=request.run,
        thread=quota_request.thread,
        user=quota_request.user,
        bot=quota_request.bot,
        at=started_at,
        until=min(now + settings.longest_run, started_at + MAX_RESERVATION_TIME),
        reserved=min(quota_request.max_cost, remaining, MAX_DOLLARS),
        cost=existing.cost if existing and is_restart else 0.0,
        unpriced=existing.unpriced if existing and is_restart else 0,
    )


def _read_or_unreadable(ledger_ref: LedgerRef) -> QuotaLedger:
    """Return the ledger for a repository that can't be written; an unreadable one if it can't be
    read."""
    try:
        return ledger_ref.read()
    except (WorkspaceError, ForgeError) as error:
        logger.warning("%s", error.what)
        return QuotaLedger(readable=False)


def _was_notified_today(request: RunRequest, forge: GitHubForge, now: datetime) -> bool:
    """Return True if the conversation has a comment of today that reports a reached quota."""
    number = request.trigger.number

    def reports_quota(comment: IssueComment) -> bool:
        today = day_of(comment.created_at) == day_of(now)
        is_own = _is_by(comment, normalize_login(forge.whoami()))
        return is_own and today and _QUOTA_COMMENT.match(comment.body or "") is not None

    try:
        return number is not None and any(
            reports_quota(comment) for comment in forge.recent_comments(number)
        )
    except ForgeError as error:
        logger.warning("%s", error.what)
        return True  # no comment is better than one for every request
