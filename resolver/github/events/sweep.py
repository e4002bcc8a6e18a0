"""An issue that wears the label, taken for the event of its labelling that nobody has followed.

The trigger is the one that the event would have made, so that work which the event has started
is found done.
"""

from collections.abc import Collection
from datetime import datetime, timedelta

from resolver.github.context.labelled_issues import LabelledIssue, Labelling
from resolver.github.events.ignored import IgnoredEvent, not_a_person
from resolver.github.events.issues import label_key
from resolver.github.events.payloads import User
from resolver.models.run import Actor, Snapshot, Trigger, TriggerKind

LATE = timedelta(seconds=1)
"""By how much the moment in the webhook's event, the issue's `updated_at`, may be later than that
in the list of its events."""


def labelled_trigger(
    issue: LabelledIssue,
    labelling: Labelling | None,
    *,
    repository: str,
    bot_login: str = "",
    allowed_users: Collection[str] = (),
    denied_users: Collection[str] = (),
) -> Trigger | IgnoredEvent:
    """What the labelling asks for, or why it starts no work now.

    bot_login: our own account, never listened to; allowed_users: bots that are; denied_users: who
    never is.
    """
    if labelling is None:
        return IgnoredEvent("the label was taken off meanwhile")
    if not labelling.is_open:
        return IgnoredEvent("the issue was closed meanwhile")
    if labelling.pull_request_by:
        return IgnoredEvent(f"an open pull request of {labelling.pull_request_by} closes it")
    if labelling.pull_request:
        return IgnoredEvent("it has an open pull request")
    by = labelling.by
    if by is None:
        return IgnoredEvent("who labelled it has no account any more")
    account = User(login=by.login, id=by.id, type=by.type)
    ignored = not_a_person(account, bot_login, allowed_users, denied_users)
    if ignored:
        return IgnoredEvent(f"it was labelled by {by.login}: {ignored.reason}")
    # in the second of the labelling itself nobody can say which of the two came first
    if labelling.edited_at is not None and labelling.edited_at >= labelling.at:
        return IgnoredEvent(
            f"it was edited after {by.login} labelled it: read it, and label it again"
        )
    return _trigger(issue, labelling, by.login, by.id, by.type == "Bot", repository)


def a_second_later(trigger: Trigger, issue: LabelledIssue, labelling: Labelling) -> Trigger:
    """The same, should the webhook's event have had the later moment."""
    at = trigger.at + LATE
    key = label_key(issue.id, labelling.label, at)
    return trigger.model_copy(update={"at": at, "key": key})


def _trigger(
    issue: LabelledIssue, labelling: Labelling, login: str, id: int, is_bot: bool, repository: str
) -> Trigger:
    at: datetime = labelling.at
    return Trigger(
        key=label_key(issue.id, labelling.label, at),
        kind=TriggerKind.ISSUE_LABELED,
        repository=repository,
        number=issue.number,
        actor=Actor(login=login, id=id, is_bot=is_bot),
        at=at,
        snapshot=Snapshot(title=issue.title, body=issue.body, author=issue.author),
    )
