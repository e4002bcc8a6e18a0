"""Takes the parts out of an agent's final message that belong below a heading of their own.

The finish tool has a field for each part. Models also write them as labelled paragraphs of the
message ("**What was wrong.** ..."), which would repeat the headings that comments give the fields.
"""

import re

from resolver.models.run import Outcome

_LABELS = {
    "cause": r"what was wrong|(?:root )?cause|(?:the )?problem|why",
    "change": r"what (?:was )?changed|(?:the )?(?:changes?|fix|solution)|what i did",
    "verification": r"how it was (?:verified|tested|checked)|what (?:the agent |i )?checked"
    r"|verification|test(?:s|ing)?|how to test",
    "remaining": r"what(?: is|'s) left|remaining(?: work)?|left|limitations?|follow[- ]?ups?",
}
"""Fields of the outcome, and the labels that stand for them."""

_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(?P<label>.+?)[ \t]*#*[ \t]*")
_BOLD = re.compile(r" {0,3}(?P<mark>\*\*|__)(?P<label>[^*_\n]{2,40})(?P=mark)(?P<rest>.*)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def move_labelled_parts(outcome: Outcome) -> Outcome:
    """Return the outcome with the labelled parts of its message in the fields for them.

    A field that is filled already stays as it is, and the part that says the same is dropped from
    the message. A message without known labels is not changed.
    """
    rest, parts = _split_parts(outcome.message)
    if not parts:
        return outcome
    fields = {name: text for name, text in parts.items() if not getattr(outcome, name).strip()}
    return outcome.model_copy(update={**fields, "message": rest})


def _split_parts(message: str) -> tuple[str, dict[str, str]]:
    """Return the text outside of the labelled parts, and the text of each part by its field."""
    texts: dict[str, list[str]] = {"": []}
    field, fence, after_blank = "", "", True
    for line in message.splitlines():
        opening = _FENCE.match(line)
        if fence:
            is_end = opening and opening[1].startswith(fence) and not line.strip(" `~\t")
            fence = "" if is_end else fence
        elif opening:
            fence = opening[1]
        elif (label := _label_of(line, after_blank)) is not None:
            field, line = label
        texts.setdefault(field, []).append(line)
        after_blank = not line.strip()
    joined = {name: "\n".join(lines).strip() for name, lines in texts.items()}
    return joined.pop(""), {name: text for name, text in joined.items() if text}


def _label_of(line: str, after_blank: bool) -> tuple[str, str] | None:
    """Return the field that a line begins, and the rest of the line; None if it begins nothing.

    Another heading ends a part: its field is "", and the line stays whole.
    """
    if heading := _HEADING.fullmatch(line):
        field = _field_of(heading["label"].strip("*_ "))
        return (field, "") if field else ("", line)
    bold = _BOLD.fullmatch(line) if after_blank else None
    if bold is None:
        return None
    rest = bold["rest"].strip()
    ends_label = bold["label"][-1] in ".:?" or rest[:1] == ":" or not rest
    field = _field_of(bold["label"]) if ends_label else ""
    if field:
        return field, rest.removeprefix(":").strip()
    return ("", line) if not rest else None


def _field_of(label: str) -> str:
    name = label.strip(" .:?").replace("\u2019", "'").casefold()
    return next((field for field, names in _LABELS.items() if re.fullmatch(names, name)), "")
