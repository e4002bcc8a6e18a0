"""Decides what the requester could see at the time of the request, and cleans it for the agent.

A text counts only if it is not newer than the trigger. Comments that maintainers have hidden as
unwanted are not used, hidden text is removed, and sizes are limited. What is not used is named.
Source: https://docs.github.com/en/graphql/reference/interfaces#minimizable
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime

from resolver.github.context.conversation import RemarkText
from resolver.github.text.hidden_text import strip_hidden
from resolver.github.text.links import PictureLinks
from resolver.github.text.markdown import shorten_text
from resolver.github.text.markers import without_markers
from resolver.models.run import Trigger, TriggerKind
from resolver.trace.plain import plural

MAX_TITLE_CHARACTERS = 256
"""Maximum number of characters of a title."""

_UNWANTED_REASONS = frozenset({"spam", "abuse", "off-topic"})


def reason_unseen(
    trigger: Trigger, kind: TriggerKind, id: int, created: datetime, updated: datetime
) -> str | None:
    """Return why the requester may not have seen this text, None if they have seen it.

    kind: the kind of trigger that the text itself would have been. Only ids of the same kind can be
    compared.

    GitHub's times are whole seconds. A text of the same second as the trigger counts as earlier
    only if it has a smaller id, an edit of the same second always as later. A command line asks for
    the current state, so there nothing is late.
    """
    if trigger.kind is TriggerKind.COMMAND_LINE:
        return None
    requested_id = trigger.comment_id if trigger.kind is kind else None
    if requested_id is not None and (
        id == requested_id or (created == trigger.at and id < requested_id)
    ):
        return "edited after" if updated > max(created, trigger.at) else None
    if created >= trigger.at:
        return "written after"
    return "edited after" if updated >= trigger.at else None


def utc(moment: datetime) -> datetime:
    """Return the time in UTC, which the API means if it names no time zone."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


@dataclass
class SeenTexts:
    """Cleans the texts of one task. own_login: Resolver's.

    Attributes:
        left_out: What is not used, for people.
        links: The pictures in the texts.
    """

    trigger: Trigger
    own_login: str
    left_out: list[str] = field(default_factory=list)
    links: PictureLinks = field(default_factory=PictureLinks)
    _late: list[str] = field(default_factory=list)
    _minimized: int = 0

    @property
    def is_now(self) -> bool:
        """True if the request is about the present state."""
        return self.trigger.kind is TriggerKind.COMMAND_LINE

    def is_late(self, moment: datetime) -> bool:
        """Return True if it is not before the request."""
        return not self.is_now and utc(moment) >= self.trigger.at

    def is_ours(self, login: str) -> bool:
        """Return True if it is Resolver's login."""
        return login.casefold() == self.own_login.casefold()

    def clean(self, text: str, place: str, author: str | None = None) -> str:
        """Return the text without what its readers don't see. place: names it for people."""
        cleaned = strip_hidden(without_markers(text, author or "", self.own_login))
        if cleaned.removed:
            self.left_out.append(f"hidden in {place}: {', '.join(cleaned.removed)}")
        return cleaned.text.strip()

    def title(self, text: str, place: str) -> str:
        """Return a title, cleaned and on one line."""
        return shorten_text(" ".join(self.clean(text, place).split()), MAX_TITLE_CHARACTERS)

    def shorten(self, text: str, place: str, limit: int) -> str:
        """Return at most `limit` characters of the text, and report it if that is not all."""
        if len(text) > limit:
            self.left_out.append(f"{place} after its first {limit:,} characters")
        return shorten_text(text, limit)

    def remark(
        self,
        remark: RemarkText,
        place: str,
        kind: TriggerKind,
        api_path: str,
        limit: int,
        at: datetime | None = None,
        *,
        is_of_request: bool = False,
    ) -> str | None:
        """Return the text of a comment or review, None if it is not to be used.

        place: where it is, for people. kind: as in `reason_unseen`. api_path: its path on the REST
        API. at: when it became visible, if not when it was written. is_of_request: True if it was
        submitted with the request, and so was visible with it, whatever its time says.
        """
        at = at or utc(remark.created_at)
        if is_of_request:
            at = min(at, self.trigger.at)
        edited = max(at, utc(remark.edited_at)) if remark.edited_at else at
        reason = reason_unseen(self.trigger, kind, remark.id, at, edited)
        if is_of_request:
            reason = "edited after" if edited > self.trigger.at else None
        place = f"a comment {place} of {remark.author}".replace("  ", " ")
        if reason is not None:
            self._late.append(reason)
            return None
        if _is_unwanted(remark) and remark.author.casefold() != self.trigger.actor.login.casefold():
            self._minimized += 1
            return None
        body = self.clean(remark.body, place, remark.author)
        body = self.links.take(body, f"in {place}", api_path, remark.author)
        return self.shorten(body, place, limit)

    def report_unused_remarks(self) -> None:
        """Say how many comments came too late, were edited since, or are hidden."""
        self.left_out += [
            f"{plural(count, 'comment')} {reason} the request"
            for reason, count in sorted(Counter(self._late).items())
        ]
        if self._minimized:
            hidden = plural(self._minimized, "comment")
            self.left_out.append(f"{hidden} hidden as spam, abuse or off-topic")


def _is_unwanted(remark: RemarkText) -> bool:
    """Return True if a comment is hidden as spam, abuse or off-topic.

    Comments hidden as outdated, resolved or duplicate are read.
    """
    reason = (remark.why_minimized or "").casefold().replace("_", "-")
    return remark.is_minimized and reason in _UNWANTED_REASONS
