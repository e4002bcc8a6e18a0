"""What people have edited in a pull request of ours stays theirs: a hidden mark tells the words
that we last wrote there.

The mark follows the marker of the run; a body whose text or a pull request whose title has become
something else is not written anew: what is new goes into one folded part at its end.
"""

import hashlib
import re

from resolver.forge.fitting import MAX_BODY
from resolver.templates import render
from resolver.trace.markdown import utf16_length

_WORDS = re.compile(
    r"<!-- resolver:words title=([0-9a-f]{16}) body=([0-9a-f]{16})(?: (draft))? -->"
)
_ANY_MARKER = re.compile(r"\A(?:\s*<!-- resolver:[^\n]*? -->)+\s*")
_FOLD = re.compile(r"\n*<!-- resolver:newest -->\n.*?\n<!-- resolver:end -->\n*", re.DOTALL)


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


def is_our_draft(body: str) -> bool:
    """Whether it was a draft because we made it one."""
    found = _WORDS.search(_markers(body))
    return found is not None and found[3] is not None


def _markers(body: str) -> str:
    found = _ANY_MARKER.match(body)
    return found[0] if found else ""


def with_newest(body: str, marker: str, newest: str) -> str:
    """A body that people have edited, with what is new folded at its end; what was folded there
    before goes. Below GitHub's limit: the folded part is left out where it has no room.

    marker: of the run. newest: our words, "" for none.
    """
    theirs = _FOLD.sub("\n\n", text_of(body).replace("\r\n", "\n")).strip()
    mark = _WORDS.search(_markers(body))
    head = f"{marker}\n{mark[0]}" if mark else marker
    kept = f"{head}\n\n{theirs}\n"
    if not newest:
        return kept
    fold = render("comments/pull_request_newest.md.j2", newest=newest).strip()
    whole = f"{kept}\n<!-- resolver:newest -->\n{fold}\n<!-- resolver:end -->\n"
    return whole if utf16_length(whole) <= MAX_BODY else kept


def room_below(body: str) -> int:
    """UTF-16 units that are left for what is folded at the end of a body."""
    return MAX_BODY - utf16_length(_FOLD.sub("", text_of(body))) - 1_000
