"""Detects what people edited in Resolver's pull requests, so that it is never overwritten.

A hidden marker after the run's marker holds digests of the title and text that Resolver wrote. A
title or text that no longer matches is not replaced; what is new goes into a folded section at the
end of the body.
"""

import hashlib
import re
from typing import Literal

from resolver.config.templates import render
from resolver.github.text.fit import MAX_BODY
from resolver.trace.markdown import utf16_length

_WORDS = re.compile(
    r"<!-- resolver:words title=([0-9a-f]{16}) body=([0-9a-f]{16})(?: (draft|theirs))? -->"
)
_ANY_MARKER = re.compile(r"\A(?:\s*<!-- resolver:[^\n]*? -->)+\s*")
_FOLD = re.compile(
    r"\n*<!-- resolver:newest(?: run=[0-9A-Za-z-]{1,60})? -->\n.*?\n<!-- resolver:end -->\n*",
    re.DOTALL,
)
_STANDING = re.compile(
    r"\n*<!-- resolver:standing -->\n.*?\n<!-- resolver:stands -->\n*", re.DOTALL
)

Drafting = Literal["", "draft", "theirs"]
"""Who decides on the draft status of a pull request.

"" means ready for review, as Resolver set it; "draft" means a draft, as Resolver set it. "theirs"
means that a person changed the status, and from then on people decide.
"""


def words_marker(title: str, text: str, *, draft: bool) -> str:
    """Return the marker of the given title and body text.

    `draft` says if the pull request is opened as a draft.
    """
    end = " draft -->" if draft else " -->"
    return f"<!-- resolver:words title={_digest(title)} body={_digest(text)}{end}"


def _digest(text: str) -> str:
    # GitHub's web editor saves CRLF line ends. These and trailing spaces do not count as an edit.
    lines = (line.rstrip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    plain = "\n".join(lines).strip()
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def text_of(body: str) -> str:
    """Return a body without the markers at its start."""
    return _ANY_MARKER.sub("", body, count=1)


def title_is_ours(title: str, body: str) -> bool:
    """Return True if the title is as Resolver wrote it. Without a marker it counts as edited."""
    found = _WORDS.search(_markers(body))
    return found is not None and found[1] == _digest(title)


def body_is_ours(body: str) -> bool:
    """Return True if the text is as Resolver wrote it. Without a marker it counts as edited."""
    found = _WORDS.search(_markers(body))
    return found is not None and found[2] == _digest(text_of(body))


def drafting_in(body: str, *, is_draft: bool) -> Drafting:
    """Return who decides on the draft status. Without a marker, people do.

    `is_draft` is the current status: if it differs from the marker, a person changed it.
    """
    found = _WORDS.search(_markers(body))
    if found is None or (found[3] == "draft") != is_draft:
        return "theirs"
    return "theirs" if found[3] == "theirs" else "draft" if is_draft else ""


def with_title(body: str, title: str) -> str:
    """Return the body with the marker updated to a new title. Without a marker it is unchanged."""
    head = _markers(body)
    marked = _WORDS.sub(lambda m: m[0].replace(m[1], _digest(title), 1), head, count=1)
    return marked + body[len(head) :]


def with_drafting(body: str, drafting: Drafting) -> str:
    """Return the body with the draft status in its marker updated.

    Without a marker it is unchanged.
    """
    head = _markers(body)
    end = f" {drafting} -->" if drafting else " -->"
    marked = _WORDS.sub(lambda m: f"{m[0].split(' body=')[0]} body={m[2]}{end}", head, count=1)
    return marked + body[len(head) :]


def run_marker_of(body: str) -> str:
    """Return the first marker of a body, "" if it has none."""
    head = _markers(body)
    return head.strip().split("\n")[0].strip() if head else ""


def tells_of(body: str, run: str) -> bool:
    """Return True if the body has a folded section about this run."""
    return f"<!-- resolver:newest run={run} -->" in body


def _markers(body: str) -> str:
    found = _ANY_MARKER.match(body)
    return found[0] if found else ""


def with_newest(
    body: str, marker: str, newest: str, *, beside: bool = False, run: str = "", standing: str = ""
) -> str:
    """Return the body with `newest` in a folded section at its end, in place of earlier ones.

    The result stays below GitHub's limit: if the folded section does not fit, it is left out.

    `marker` is the run's marker. `newest` is the text to fold, "" for none. With `beside`, earlier
    folded sections are kept. `run` is recorded in the section, so that its text is not added twice.
    `standing` is shown above the section and replaces what an earlier run put there.
    """
    text = _STANDING.sub("\n\n", text_of(body).replace("\r\n", "\n"))
    theirs = (text if beside else _FOLD.sub("\n\n", text)).strip()
    mark = _WORDS.search(_markers(body))
    head = "\n".join(filter(None, (marker, mark[0] if mark else "")))
    kept = f"{head}\n\n{theirs}\n".lstrip("\n")
    if not newest:
        return kept
    fold = render("comments/pull_request_newest.md.j2", newest=newest).strip()
    above = f"\n<!-- resolver:standing -->\n{standing}\n<!-- resolver:stands -->\n"
    begin = f"<!-- resolver:newest{f' run={run}' if run else ''} -->"
    whole = f"{kept}{above if standing else ''}\n{begin}\n{fold}\n<!-- resolver:end -->\n"
    return whole if utf16_length(whole) <= MAX_BODY else kept


def room_below(body: str, *, beside: bool = False) -> int:
    """Return how many UTF-16 units are left for a folded section at the end of a body.

    With `beside`, earlier folded sections are kept and take room.
    """
    text = text_of(body)
    return MAX_BODY - utf16_length(text if beside else _FOLD.sub("", text)) - 1_500
