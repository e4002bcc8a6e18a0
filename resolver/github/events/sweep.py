"""Turn an issue that has the label into the trigger of its labelling.

A sweep uses it for labels whose event was never handled. The trigger equals the one that the event
would have made, so that work which the event did start is found.
"""

from collections.abc import Collection
from datetime import datetime, timedelta

from resolver.github.context.labelled_issues import LabelledIssue, Labelling
from resolver.github.events.issues import label_key
from resolver.github.events.payloads import User
from resolver.github.events.permission import IgnoredEvent, not_a_person
from resolver.models.run import Actor, Snapshot, Trigger, TriggerKind

MAX_WEBHOOK_DELAY = timedelta(seconds=1)
"""How much later the webhook's time of a labelling may be than the time in the issue's events.

The webhook's time is the issue's `updated_at`.
"""


def labelled_trigger(
    issue: LabelledIssue,
    labelling: Labelling | None,
    *,
    repository: str,
    bot_login: str = "",
    allowed_users: Collection[str] = (),
    denied_users: Collection[str] = (),
) -> Trigger | IgnoredEvent:
    """Return the trigger for a labelling, or the reason why it starts no work now.

    Args:
        issue: The issue.
        labelling: When and by whom it was labelled; None when the label is no longer there.
        repository: OWNER/NAME.
        bot_login: Login of Resolver's own account, whose labels are ignored.
        allowed_users: Bots whose labels are accepted.
        denied_users: Accounts whose labels are always ignored.
    """
    if labelling is None:
        return IgnoredEvent("the label was removed in the meantime")
    if not labelling.is_open:
        return IgnoredEvent("the issue was closed in the meantime")
    if labelling.pull_request_by:
        return IgnoredEvent(f"an open pull request of {labelling.pull_request_by} closes it")
    if labelling.pull_request:
        return IgnoredEvent("it has an open pull request")
    labeller = labelling.by
    if labeller is None:
        return IgnoredEvent("the account that added the label no longer exists")
    account = User(login=labeller.login, id=labeller.id, type=labeller.type)
    ignored = not_a_person(account, bot_login, allowed_users, denied_users)
    if ignored:
        return IgnoredEvent(f"it was labelled by {labeller.login}: {ignored.reason}")
    # GitHub's times are in whole seconds: an edit in the second of the labelling may have come
    # after it, so that the person did not see the text.
    if labelling.edited_at is not None and labelling.edited_at >= labelling.at:
        return IgnoredEvent(
            f"it was edited after {labeller.login} labelled it: read it, and label it again"
        )
    return _trigger(
        issue, labelling, labeller.login, labeller.id, labeller.type == "Bot", repository
    )


def a_second_later(trigger: Trigger, issue: LabelledIssue, labelling: Labelling) -> Trigger:
    """Return the same trigger as it would be if the webhook's payload had the later time."""
    at = trigger.at + MAX_WEBHOOK_DELAY
    key = label_key(issue.id, labelling.label, at)
    return trigger.model_copy(update={"at": at, "key": key})


def _trigger(
    issue: LabelledIssue, labelling: Labelling, login: str, id: int, is_bot: bool, repository: str
) -> Trigger:
    """Return the trigger with the key that the webhook's event would have."""
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
