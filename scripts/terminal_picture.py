"""Draws a recorded run as an animated SVG of a terminal: the live view, and then the result.

The picture plays once and stays at its end; a reader who asks for reduced motion sees the end only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO

from rich.console import Console

from resolver.cli.live_view import LiveView
from resolver.events.log import Event
from resolver.trace.ansi import split_styles

COLUMNS = 110
MAX_PAUSE_SECONDS = 1.2
"""Longest time between two events in the picture. A model thinks longer."""

_CELL_WIDTH, _LINE_HEIGHT, _MARGIN = 7.8, 19, 16
_COLORS = {
    "light": {
        "page": "#ffffff", "line": "#d1d9e0", "text": "#1f2328", "red": "#c4211f",
        "green": "#1a7f37", "cyan": "#0b6b77", "faint": "#59636e",
    },
    "dark": {
        "page": "#0d1117", "line": "#3d444d", "text": "#e6edf3", "red": "#ff7b72",
        "green": "#5fcf78", "cyan": "#76d9e6", "faint": "#9198a1",
    },
}  # fmt: skip


@dataclass(frozen=True)
class Frame:
    """What a terminal shows from `start` on, in seconds.

    lines: those that stay, below the ones of earlier frames. live: those that are redrawn.
    """

    start: float
    lines: tuple[str, ...]
    live: tuple[str, ...] = ()


def record_frames(events: Sequence[Event]) -> list[Frame]:
    """Return the frames of the live view, one for each event. Long pauses are shortened."""
    console = Console(file=StringIO(), width=COLUMNS, record=True, force_terminal=True)
    moment = events[0].timestamp
    view = LiveView(console, now=lambda: moment)
    frames, start = [], 0.0
    for event in events:
        start += min((event.timestamp - moment).total_seconds(), MAX_PAUSE_SECONDS)
        moment = event.timestamp
        view(event)
        lines = console.export_text(styles=True).splitlines()
        console.print(view._renderable())
        live = console.export_text(styles=True).splitlines()
        frames.append(Frame(start, tuple(lines), tuple(live)))
    return frames


def draw_svg(title: str, frames: Sequence[Frame], scheme: str) -> str:
    """Return the frames as an SVG in the colors of a scheme, "light" or "dark"."""
    colors = _COLORS[scheme]
    ends = [*(frame.start for frame in frames[1:]), None]
    row, parts = 0, []
    rows = max(
        sum(len(shown_frame.lines) for shown_frame in frames[: i + 1]) + len(frame.live)
        for i, frame in enumerate(frames)
    )
    for frame, end in zip(frames, ends, strict=True):
        for line in frame.lines:
            parts.append(_text(line, row, _show(frame.start)))
            row += 1
        if end is not None and end - frame.start >= 0.1:
            style = f"{_show(frame.start)},hide 0s {end:.2f}s forwards"
            parts += [_text(line, row + i, style, "live") for i, line in enumerate(frame.live)]
    width = COLUMNS * _CELL_WIDTH + 2 * _MARGIN
    height = rows * _LINE_HEIGHT + 2 * _MARGIN
    classes = "".join(
        f".t-{name}{{fill:{colors[name]}}}" for name in ("red", "green", "cyan", "faint")
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
        f'width="{width:.0f}" height="{height}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title><style>"
        f"text{{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',"
        f"'Liberation Mono',monospace;fill:{colors['text']};white-space:pre;opacity:0}}"
        f"{classes}.t-bold{{font-weight:600}}.t-italic{{font-style:italic}}"
        "@keyframes show{to{opacity:1}}@keyframes hide{to{opacity:0}}"
        "@media (prefers-reduced-motion:reduce)"
        "{text{animation:none!important;opacity:1}.live{display:none}}"
        f'</style><rect x=".5" y=".5" width="{width - 1:.0f}" height="{height - 1}" rx="8" '
        f'fill="{colors["page"]}" stroke="{colors["line"]}"/>{"".join(parts)}</svg>\n'
    )


def _show(start: float) -> str:
    return f"show 0s {start:.2f}s forwards"


def _text(line: str, row: int, animation: str, name: str = "") -> str:
    """Return one line. Its width is given, so that columns are aligned in any font."""
    spans = "".join(
        f'<tspan class="{" ".join(f"t-{style}" for style in part.styles)}">'
        f"{escape(part.text)}</tspan>"
        if part.styles
        else escape(part.text)
        for part in split_styles(line)
    ) or escape(line)
    cells = len("".join(part.text for part in split_styles(line)) or line)
    if not cells:
        return ""
    y = _MARGIN + (row + 1) * _LINE_HEIGHT - 5
    kind = f' class="{name}"' if name else ""
    return (
        f'<text{kind} x="{_MARGIN}" y="{y}" textLength="{cells * _CELL_WIDTH:.1f}" '
        f'lengthAdjust="spacingAndGlyphs" style="animation:{animation}">{spans}</text>'
    )
