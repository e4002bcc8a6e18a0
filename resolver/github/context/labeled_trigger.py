"""Turns an issue that has the label into the trigger of its labeling.

A sweep uses it for labels whose event was never handled. The trigger equals the one that the event
would have made, so that work which the event did start is found.
"""

from datetime import timedelta

from resolver.github.context.labeled_issues import Labeling
from resolver.github.events.issues import label_key
from resolver.github.events.payloads import Issue
from resolver.github.events.permission import IgnoredEvent
from resolver.github.events.starting_events import ListeningPolicy
from resolver.models.run import Snapshot, Trigger, TriggerKind

MAX_WEBHOOK_DELAY = timedelta(seconds=1)
"""Maximum time by which the webhook's time of a labeling is later than the one in the events.

The webhook's time is the issue's `updated_at`.
"""


def labeled_trigger(
    issue: Issue, labeling: Labeling | None, repository: str, policy: ListeningPolicy
) -> Trigger | IgnoredEvent:
    """Return the trigger for a labeling, or the reason why it starts no work now.

    Args:
        issue: The issue.
        labeling: When and by whom it was labeled; None when the label is no longer there.
        repository: OWNER/NAME.
        policy: Whose labels start work.
    """
    if labeling is None:
        return IgnoredEvent("the label was removed in the meantime")
    if not labeling.is_open:
        return IgnoredEvent("the issue was closed in the meantime")
    if labeling.pull_request:
        author = labeling.pull_request_by or "ghost"
        return IgnoredEvent(f"an open pull request of {author} closes it")
    labeler = labeling.by
    if labeler is None:
        return IgnoredEvent("the account that added the label no longer exists")
    ignored = policy.ignores(labeler)
    if ignored:
        return IgnoredEvent(f"it was labeled by {labeler.login}: {ignored.reason}")
    # GitHub's times are in whole seconds: an edit in the second of the labeling may have come
    # after it, so that the person did not see the text.
    if labeling.edited_at is not None and labeling.edited_at >= labeling.at:
        return IgnoredEvent(
            f"it was edited after {labeler.login} labeled it: read it, and label it again"
        )
    return Trigger(
        key=label_key(issue.id, labeling.label, labeling.at),
        kind=TriggerKind.ISSUE_LABELED,
        repository=repository,
        number=issue.number,
        actor=labeler.actor,
        at=labeling.at,
        snapshot=Snapshot(
            title=issue.title,
            body=issue.body or "",
            author=issue.user.login if issue.user else "ghost",
        ),
    )


def with_later_time(trigger: Trigger, issue: Issue, labeling: Labeling) -> Trigger:
    """Return the same trigger as it would be if the webhook's payload had the later time."""
    at = trigger.at + MAX_WEBHOOK_DELAY
    key = label_key(issue.id, labeling.label, at)
    return trigger.model_copy(update={"at": at, "key": key})
