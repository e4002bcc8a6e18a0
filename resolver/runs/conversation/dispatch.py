"""Finds the conversation for requests whose event does not name it: a dispatch event, which has
only a number, and a failed check."""

import logging
from datetime import timedelta
from functools import partial

from resolver.config.settings import Settings
from resolver.errors import ForgeError
from resolver.github.comments.check_places import CheckPlaces
from resolver.github.events.checks import check_key
from resolver.github.events.ignored import IgnoredEvent
from resolver.github.github_forge import GitHubForge
from resolver.models.run import Trigger, TriggerKind

CLOSED_COUNTS = timedelta(days=14)
"""How long the attempts of a closed issue count, unless a merged fix closed it. Otherwise closing
the issue, which a program can do, would allow the same number of attempts again."""

logger = logging.getLogger("resolver.runs.conversation.dispatch")


def locate_dispatch(
    trigger: Trigger, forge: GitHubForge, settings: Settings, again: bool = False
) -> Trigger | IgnoredEvent:
    """Return the trigger with its issue or pull request, or the reason why there is nothing to do.

    A trigger that names its conversation is returned unchanged. again: True if an earlier run of
    this trigger was interrupted; it may have pushed to the branch, so the conditions are not
    checked again. Raises ForgeError if the conversation for a check can't be determined: nobody
    waits for such a run, so it may fail without a comment.
    """
    if trigger.kind is TriggerKind.DISPATCHED and trigger.number is not None:
        try:
            pull = forge.is_pull_request(trigger.number)
        except ForgeError as error:
            logger.warning("%s", error.what)  # the run will meet the same error and report it
            return trigger
        return trigger.model_copy(update={"is_pull_request": pull})
    if trigger.kind is TriggerKind.CHECK_FAILED:
        places = forge.check_places()
        number = conversation_for_dispatch(trigger, places)
        limit = settings.automatic_run_limits.check_fixes
        why = "" if again else _reason_not_to(trigger, number, places, limit)
        if why or (number is None and trigger.is_pull_request):
            return IgnoredEvent(why or f"no pull request of ours is open from {trigger.branch}")
        if number is None:
            number = places.open_issue(trigger.check, trigger.branch, trigger.head)
        return trigger.model_copy(update={"number": number})
    return trigger


def conversation_for_dispatch(trigger: Trigger, places: CheckPlaces) -> int | None:
    """Return the number of the pull request, or of the open issue about this check; None if there
    is none yet. Raises ForgeError."""
    if trigger.is_pull_request:
        return places.pull_of(trigger.branch)
    return places.issue_of(trigger.check)


def _reason_not_to(trigger: Trigger, number: int | None, places: CheckPlaces, most: int) -> str:
    """Return why no run is started for the check, "" if one is."""
    if places.tip(trigger.branch) != trigger.head:
        return "the branch has a newer commit: its own checks count"
    since = trigger.at - CLOSED_COUNTS
    if not trigger.is_pull_request:
        elsewhere = places.told_on(trigger.key, since)
        if elsewhere is not None and elsewhere != number:
            return f"all that fails on this commit is looked at on #{elsewhere}"
        fix = places.fix_of(number) if number is not None else None
        if fix is not None:
            return f"#{fix} is open and fixes it"
    threads = [] if number is None else [number]
    if not trigger.is_pull_request:
        threads += places.given_up(trigger.check, since)
    if threads:
        key_of = partial(check_key, trigger.repository)
        done = places.attempts(threads, trigger.branch, key_of, trigger.head)
        if done >= most:
            return f"it was tried {done} times on #{threads[0]} (max_check_fixes)"
    return ""
