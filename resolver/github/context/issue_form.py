"""Finds the issue template that a description was written with, and which fields were filled in.

A template is a markdown file or a YAML form of the default branch. Files with another content are
ignored. Every function takes time proportional to the length of the texts, because issues are
written by strangers.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Literal

import yaml

from resolver.config.bounded_yaml import read_yaml
from resolver.github.text.markdown import shorten_text, without_invisible
from resolver.models.issue_context import Form, FormField

LARGEST = 50_000
"""Maximum size of a template in bytes."""

MOST_FIELDS = 40
"""Maximum number of fields of a template."""
MOST_LABEL = 200
"""Maximum number of characters of a field's label, or of a template's name or title."""
MOST_DESCRIPTION = 400
"""Maximum number of characters of a field's description."""

LEAST_FOUND = 2
"""Number of a template's headings that a description must have, unless the template has fewer."""

_LONGEST = 600
"""Maximum number of characters of a line that can be a heading."""

_ASKING = frozenset({"input", "textarea", "dropdown", "checkboxes", "upload"})
"""Types of form elements that have a heading of their own in the issue."""

_NOTHING = frozenset({"", "no response", "none"})
"""Texts below a heading that nobody filled in. GitHub writes "No response" for an empty field."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+([^ \t].*)")
_BOLD = re.compile(r" {0,3}(?:\*\*([^*]{1,300})\*\*|__([^_]{1,300})__):?[ \t]*")
_UNDERLINE = re.compile(r" {0,3}(?:(=)=+|--+)[ \t]*")
_HEAD = re.compile(r"---[ \t]*\n(.*?\n)---[ \t]*(?:\n|\Z)", re.DOTALL)


@dataclass(frozen=True)
class _Asked:
    """A field of a template. own: the text below its heading before anybody writes there."""

    label: str
    description: str
    own: str = ""


@dataclass(frozen=True)
class _Section:
    """A heading and the text below it. level: 1 to 6, or 7 for a line in bold."""

    label: str
    level: int
    below: str


@dataclass(frozen=True)
class _Template:
    name: str
    path: str
    title: str
    asked: tuple[_Asked, ...]


def find_form(templates: Mapping[str, bytes], title: str, body: str) -> Form | None:
    """Return the template that fits a description best, None if none fits.

    A template fits if the description has all of its headings, or at least `LEAST_FOUND`.

    templates: content by path.
    title, body: those of the issue, the body without hidden text.
    """
    if not templates:
        return None
    sections = _sections(body)
    headings = {_plain(section.label) for section in sections}
    read = (_read(path, templates[path]) for path in sorted(templates))
    fitting = [
        each
        for each in read
        if each is not None and _found(each, headings) >= min(LEAST_FOUND, len(each.asked))
    ]
    best = max(fitting, key=lambda each: _fit(each, headings, title), default=None)
    if best is None:
        return None
    return Form(
        name=best.name,
        path=best.path,
        fields=_filled(best.asked, sections),
    )


def _found(template: _Template, headings: Collection[str]) -> int:
    """Return how many of the template's headings the description has."""
    return sum(_plain(asked.label) in headings for asked in template.asked)


def _fit(template: _Template, headings: Collection[str], title: str) -> tuple[int, float, bool]:
    """Return the sort key of a template: the better it fits, the larger.

    It consists of the number of the template's headings that the description has, their share, and
    whether the title starts with the template's title.
    """
    found = _found(template, headings)
    begins = bool(template.title) and title.casefold().startswith(template.title.casefold())
    return found, found / len(template.asked), begins


def _filled(asked: Sequence[_Asked], sections: Sequence[_Section]) -> tuple[FormField, ...]:
    """Return the fields with the state of their answers.

    A heading that is not in the template was added by the author; it is part of the answer above
    it.
    """
    answers: dict[str, list[str]] = {}
    known = {_plain(each.label) for each in asked}
    current: list[str] = []
    for section in sections:
        if _plain(section.label) in known:
            current = answers.setdefault(_plain(section.label), [])
        else:
            current.append(section.label)
        current.append(section.below)
    return tuple(
        FormField(
            label=each.label,
            description=each.description,
            answer=_judged(answers.get(_plain(each.label)), each.own),
        )
        for each in asked
    )


def _judged(answer: Sequence[str] | None, own: str) -> Literal["given", "empty", "missing"]:
    if answer is None:
        return "missing"
    return "empty" if _plain("\n".join(answer)) in {*_NOTHING, _plain(own)} else "given"


def _read(path: str, content: bytes) -> _Template | None:
    """Return the template in a file, None if it is not a template or has no heading."""
    if len(content) > LARGEST:
        return None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    text = text.replace("\r\n", "\n")
    is_form = PurePosixPath(path).suffix.lower() in {".yml", ".yaml"}
    head = None if is_form else _HEAD.match(text)
    about = _yaml(text if is_form else head[1] if head else "")
    asked = _of_form(about) if is_form else _of_markdown(text[head.end() if head else 0 :])
    kept = tuple({_plain(each.label): each for each in asked if _plain(each.label)}.values())
    if not kept:
        return None
    name = _words(about.get("name"), MOST_LABEL) or PurePosixPath(path).stem
    return _Template(name, path, _words(about.get("title"), MOST_LABEL), kept[:MOST_FIELDS])


def _of_form(form: Mapping[str, Any]) -> Iterator[_Asked]:
    """Yield the fields of a YAML form.

    Source:
    https://docs.github.com/communities/using-templates-to-encourage-useful-issues-and-pull-requests/syntax-for-githubs-form-schema
    """
    body = form.get("body")
    for element in body if isinstance(body, list) else ():
        given = element.get("attributes") if isinstance(element, dict) else None
        if isinstance(given, dict) and element.get("type") in _ASKING:
            own = given.get("value")
            yield _Asked(
                _words(given.get("label"), MOST_LABEL),
                _words(given.get("description"), MOST_DESCRIPTION),
                own if isinstance(own, str) else "",
            )


def _of_markdown(text: str) -> Iterator[_Asked]:
    """Yield the headings of a markdown template. The text and comments below describe each."""
    sections = _sections(text)
    levels = [section.level for section in sections[1:]] + [0]
    for section, next_level in zip(sections, levels, strict=False):
        if not section.below.strip() and next_level > section.level:
            continue  # a heading that only groups the ones below it
        asks = re.sub(r"<!-{2,}|(?<!-)-{2,}>", " ", section.below)
        own = re.sub(r"<!--.*?(?:-->|\Z)", "", section.below, flags=re.DOTALL)
        yield _Asked(_words(section.label, MOST_LABEL), _words(asks, MOST_DESCRIPTION), own)


def _yaml(text: str) -> Mapping[str, Any]:
    """Return the mapping in a YAML text, with scalars as text; empty if there is none."""
    try:
        found = read_yaml(text, texts=True)
    except yaml.YAMLError:
        return {}
    return found if isinstance(found, dict) else {}


def _sections(text: str) -> list[_Section]:
    """Return the headings of a text and what is below each. A line in bold counts as a heading.

    Headings within fenced code blocks are ignored:
    https://spec.commonmark.org/0.31.2/#fenced-code-blocks
    """
    found: list[tuple[str, int, list[str]]] = []
    fence = before = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not line[mark.end() :].strip():
            fence = ""
        label, level = ("", 0) if fence or mark else _heading(line, before)
        if label and label == before.strip() and found:
            found[-1][2].pop()  # the underline makes the line above a heading
        if label:
            found.append((label, level, []))
        elif found:
            found[-1][2].append(line)
        before = "" if fence or mark or label else line
    return [_Section(label, level, "\n".join(lines)) for label, level, lines in found]


def _heading(line: str, before: str) -> tuple[str, int]:
    """Return text and level of the heading that a line is, or that it makes of the line before it.

    Returns "" and 0 if it is neither.
    """
    if len(line) > _LONGEST:
        return "", 0
    if found := _HEADING.fullmatch(line):
        return found[2].rstrip(" \t").rstrip("#").rstrip(" \t"), len(found[1])
    if found := _BOLD.fullmatch(line):
        return found[1] or found[2], 7
    if 0 < len(before.strip()) <= _LONGEST and (found := _UNDERLINE.fullmatch(line)):
        return before.strip(), 1 if found[1] == "=" else 2
    return "", 0


def _plain(text: str) -> str:
    """Return the text in a form for comparison, without case and marks for bold or code."""
    bare = re.sub(r"[*_`\ufe0f]", "", without_invisible(text))
    return " ".join(bare.split()).rstrip(":").strip().casefold()


def _words(value: Any, most: int) -> str:
    """Return the text on one line, shortened to `most` characters; "" if it is no text."""
    if not isinstance(value, str):
        return ""
    return shorten_text(" ".join(without_invisible(value).split()), most)
