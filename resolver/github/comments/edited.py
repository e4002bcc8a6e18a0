"""What people have edited in a pull request of ours stays theirs: a hidden mark tells the words
that we last wrote there.

The mark follows the marker of the run; a body whose text or a pull request whose title has become
something else is not written anew: what is new goes into one folded part at its end.
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
"""Who decides whether it is a draft. "": it is ready, by us. draft: it is one, by us. theirs: a
person has changed that, and decides from then on."""


def words_marker(title: str, text: str, *, draft: bool) -> str:
    """The mark of a title and of a body's text as we write them. draft: whether it was opened as
    one."""
    end = " draft -->" if draft else " -->"
    return f"<!-- resolver:words title={_digest(title)} body={_digest(text)}{end}"


def _digest(text: str) -> str:
    lines = (line.rstrip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    plain = "\n".join(lines).strip()
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def text_of(body: str) -> str:
    """A body without the markers at its start."""
    return _ANY_MARKER.sub("", body, count=1)


def title_is_ours(title: str, body: str) -> bool:
    """Whether nobody has edited the title since we wrote it. Without a mark, somebody has."""
    found = _WORDS.search(_markers(body))
    return found is not None and found[1] == _digest(title)


def body_is_ours(body: str) -> bool:
    """Whether nobody has edited the text since we wrote it. Without a mark, somebody has."""
    found = _WORDS.search(_markers(body))
    return found is not None and found[2] == _digest(text_of(body))


def drafting_in(body: str, *, is_draft: bool) -> Drafting:
    """Who decides about it by now. is_draft: whether it is one now. Without a mark, people do."""
    found = _WORDS.search(_markers(body))
    if found is None or (found[3] == "draft") != is_draft:
        return "theirs"
    return "theirs" if found[3] == "theirs" else "draft" if is_draft else ""


def with_title(body: str, title: str) -> str:
    """The body with the mark of another title that we write; without a mark it stays as it is."""
    head = _markers(body)
    marked = _WORDS.sub(lambda m: m[0].replace(m[1], _digest(title), 1), head, count=1)
    return marked + body[len(head) :]


def with_drafting(body: str, drafting: Drafting) -> str:
    """The body with another word in its mark; without one it stays as it is."""
    head = _markers(body)
    end = f" {drafting} -->" if drafting else " -->"
    marked = _WORDS.sub(lambda m: f"{m[0].split(' body=')[0]} body={m[2]}{end}", head, count=1)
    return marked + body[len(head) :]


def run_marker_of(body: str) -> str:
    """The first marker of a body, as it is; "" without one."""
    head = _markers(body)
    return head.strip().split("\n")[0].strip() if head else ""


def tells_of(body: str, run: str) -> bool:
    """Whether what `run` has added is folded in the body already."""
    return f"<!-- resolver:newest run={run} -->" in body


def _markers(body: str) -> str:
    found = _ANY_MARKER.match(body)
    return found[0] if found else ""


def with_newest(
    body: str, marker: str, newest: str, *, beside: bool = False, run: str = "", standing: str = ""
) -> str:
    """A body that stays, with what is new folded at its end; what was folded there before goes.
    Below GitHub's limit: the folded part is left out where it has no room.

    marker: of the run. newest: our words, "" for none. beside: what was folded before stays too.
    run: whose words they are, so that they are not added again. standing: what stands above the
    fold, in the place of what stood there before.
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
    """UTF-16 units that are left for what is folded at the end of a body. beside: as above."""
    text = text_of(body)
    return MAX_BODY - utf16_length(text if beside else _FOLD.sub("", text)) - 1_500
