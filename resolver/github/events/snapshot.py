"""The text and the properties of an issue or pull request as the requester saw them."""

from resolver.github.events.payloads import SubjectPayload
from resolver.models.run import Snapshot

MOST_NAMED = 100
"""Maximum number of labels, and of assignees, that are kept."""


def snapshot_of(subject: SubjectPayload) -> Snapshot:
    """Return the text, labels, milestone and assignees of an issue or pull request in the event."""
    labels = subject.labels
    return Snapshot(
        title=subject.title,
        body=subject.body or "",
        author=subject.user.login if subject.user else "",
        labels=None if labels is None else tuple(label.name for label in labels[:MOST_NAMED]),
        milestone=subject.milestone.title if subject.milestone else "",
        assignees=tuple(who.login for who in (subject.assignees or ())[:MOST_NAMED] if who),
    )
