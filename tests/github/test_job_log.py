"""Tests of shortening a job's log to the lines about its failure."""

from hypothesis import given
from hypothesis import strategies as st

from resolver.github.context.failed_checks import cut_log

STAMP = "2026-01-02T03:04:05.1234567Z "


def log(*lines: str) -> str:
    return "\ufeff" + "\r\n".join(STAMP + line for line in lines) + "\r\n"


def test_timestamps_colours_and_overwritten_progress_are_removed() -> None:
    text = log("\x1b[31mred\x1b[0m", "10%\r50%\r100% done", "a\u200bb", "\x1b]0;title\x07x")
    assert cut_log(text, 1000) == "red\n100% done\nab\nx"


PIECES = ["\n", "\r", "error: x", "##[error]", "\x1b[1m", "line", STAMP, "E   ", "\u202e", "\ud800"]


def test_a_secret_is_redacted_before_a_line_is_truncated() -> None:
    secret = "s" * 10 + "e" * 600

    def hide(text: str) -> str:
        return text.replace(secret, "[redacted]")

    for line in (f"error: {secret}", f"error: sss\x1b[1m{secret[3:]}", f"{secret} error:"):
        cut = cut_log(line, 200, hide)
        assert "[redacted]" in cut
        assert "ee" not in cut


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=60), st.integers(0, 500))
def test_the_excerpt_of_any_log_fits_and_is_clean(pieces: list[str], room: int) -> None:
    cut = cut_log("".join(pieces), room)
    assert len(cut) <= room
    assert not set(cut) & {"\x1b", "\r", "\u202e", "\x00"}
