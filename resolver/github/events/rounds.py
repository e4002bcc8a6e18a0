"""A submitted review as one request: which conversations on lines it asks about, and what it says
as a whole. Whichever of its events came first, the answer is the same. No network here.
"""

from collections.abc import Iterator, Sequence

from resolver.github.events.commands import read_instruction
from resolver.github.events.mention import find_instruction
from resolver.models.pull_request import AskedThread, AuthoredText, PullRequestContext, ReviewThread
from resolver.models.run import Command, Trigger, TriggerKind

MOST_ASKED = 50
"""Conversations of one request; what is beyond them is for another."""

_ANSWERED = frozenset({Command.FIX, Command.QUESTION})
"""What is done, and told, conversation by conversation."""


def requested_threads(
    trigger: Trigger, pull: PullRequestContext, mention: str
) -> tuple[AskedThread, ...]:
    """The conversations that the trigger's review asks about, as T1, T2, ..., oldest first.

    A review whose own words mention us asks about all that it comments on; otherwise each comment
    asks for itself. Only what the requester wrote in that review asks.
    """
    if trigger.command not in _ANSWERED:
        return ()
    whole = _body(trigger, pull, mention) is not None
    asked: list[AskedThread] = []
    for thread in pull.threads:
        said = [w for w in thread.comments if _is_of_request(w, trigger)]
        asking = said if whole else [w for w in said if _asks(w, mention)]
        if asking and len(asked) < MOST_ASKED:
            words = "\n\n".join(find_instruction(w.body, mention) or w.body for w in asking)
            asked.append(AskedThread(label=f"T{len(asked) + 1}", thread=thread, request=words))
    return tuple(asked)


def render_deferred_threads(
    trigger: Trigger, pull: PullRequestContext, asked: Sequence[AskedThread]
) -> str:
    """What a person is told of conversations beyond the bound; "" for none."""
    if len(asked) < MOST_ASKED:
        return ""
    known = {each.thread.id for each in asked}
    more = [t for t in pull.threads if t.id not in known and _is_in(t, trigger)]
    return f"{len(more)} more conversations of the review, beyond {MOST_ASKED}" if more else ""


def whole_request(
    trigger: Trigger, pull: PullRequestContext, asked: Sequence[AskedThread], mention: str
) -> Trigger:
    """The trigger with the words of the whole review, and what these ask for: work, where any of
    them asks for work."""
    body = _body(trigger, pull, mention)
    if not asked or (len(asked) == 1 and body is None):
        return trigger
    parts = [body] if body else []
    parts += [f"{each.label}: {each.request}" for each in asked]
    works = any(
        read_instruction(words, pull_request=True).command is Command.FIX
        for words in _instructions(trigger, asked, body, mention)
    )
    command = Command.FIX if works and trigger.command is Command.QUESTION else trigger.command
    return trigger.model_copy(update={"instruction": "\n\n".join(parts), "command": command})


def _body(trigger: Trigger, pull: PullRequestContext, mention: str) -> str | None:
    """What the review's own words ask; None where they don't mention us."""
    for review in pull.reviews:
        if review.words.id == trigger.review_id and _is_author(review.words, trigger):
            return find_instruction(review.words.body, mention)
    # Its words were edited since, and are not read: the event had them.
    submitted = trigger.kind is TriggerKind.REVIEW_SUBMITTED
    return trigger.instruction if submitted and trigger.review_id is not None else None


def _instructions(
    trigger: Trigger, asked: Sequence[AskedThread], body: str | None, mention: str
) -> Iterator[str]:
    """What follows each mention."""
    if body is not None:
        yield body
    for each in asked:
        for words in each.thread.comments:
            found = find_instruction(words.body, mention)
            if found is not None and _is_of_request(words, trigger):
                yield found


def _is_in(thread: ReviewThread, trigger: Trigger) -> bool:
    return any(_is_of_request(words, trigger) for words in thread.comments)


def _is_of_request(words: AuthoredText, trigger: Trigger) -> bool:
    of_review = trigger.review_id is not None and words.review == trigger.review_id
    return of_review and _is_author(words, trigger)


def _is_author(words: AuthoredText, trigger: Trigger) -> bool:
    return words.author.casefold() == trigger.actor.login.casefold()


def _asks(words: AuthoredText, mention: str) -> bool:
    return find_instruction(words.body, mention) is not None
