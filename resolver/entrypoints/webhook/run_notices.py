"""Sentences on the page of a run about what the page shows."""

from resolver.config.templates import render

REFRESH_SECONDS = 10
"""Interval in seconds at which a browser without JavaScript reloads the page of an active run."""


def page_notices(has_events: bool, has_ended: bool, skipped: int, unread: int) -> list[str]:
    """Return the notices. skipped: number of bytes of the log that are left out. unread: number of
    lines that can't be parsed."""
    text = render(
        "trace/live.txt.j2",
        is_active=not has_ended,
        events=has_events,
        seconds=REFRESH_SECONDS,
        skipped=f"{skipped / 1e6:,.1f} MB" if skipped else "",
        unread=unread,
    )
    return [line for line in text.splitlines() if line]
