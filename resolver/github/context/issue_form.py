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
from resolver.github.text.markdown import (
    shorten_text,
)
from resolver.models.issue_context import Form, FormField
from resolver.security.invisible_text import without_invisible

MAX_TEMPLATE_BYTES = 50_000
"""Maximum size of a template in bytes."""

MAX_FIELDS = 40
"""Maximum number of fields of a template."""
MAX_LABEL_CHARACTERS = 200
"""Maximum number of characters of a field's label, or of a template's name or title."""
MAX_DESCRIPTION_CHARACTERS = 400
"""Maximum number of characters of a field's description."""

MIN_MATCHING_HEADINGS = 2
"""Number of a template's headings that a description must have, unless the template has fewer."""

_MAX_HEADING_CHARACTERS = 600
"""Maximum number of characters of a line that can be a heading."""

_FIELD_TYPES = frozenset({"input", "textarea", "dropdown", "checkboxes", "upload"})
"""Types of form elements that have a heading of their own in the issue."""

_EMPTY_ANSWERS = frozenset({"", "no response", "none"})
"""Texts below a heading that nobody filled in. GitHub writes "No response" for an empty field."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+([^ \t].*)")
_BOLD = re.compile(r" {0,3}(?:\*\*([^*]{1,300})\*\*|__([^_]{1,300})__):?[ \t]*")
_UNDERLINE = re.compile(r" {0,3}(?:(=)=+|--+)[ \t]*")
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?\n)---[ \t]*(?:\n|\Z)", re.DOTALL)


@dataclass(frozen=True)
class _Field:
    """A field of a template.

    default_text: the text below its heading before anybody writes there.
    """

    label: str
    description: str
    default_text: str = ""


@dataclass(frozen=True)
class _Section:
    """A heading and the text below it. level: 1 to 6, or 7 for a line in bold."""

    label: str
    level: int
    content: str


@dataclass(frozen=True)
class _Template:
    name: str
    path: str
    title: str
    fields: tuple[_Field, ...]


def find_form(templates: Mapping[str, bytes], title: str, body: str) -> Form | None:
    """Return the template that fits a description best, None if none fits.

    A template fits if the description has all of its headings, or at least `MIN_MATCHING_HEADINGS`.

    templates: content by path.
    title, body: those of the issue, the body without hidden text.
    """
    if not templates:
        return None
    sections = _sections(body)
    headings = {_normalize(section.label) for section in sections}
    parsed = (_read_template(path, templates[path]) for path in sorted(templates))
    fitting_templates = [
        template
        for template in parsed
        if template is not None
        and _count_matching_headings(template, headings)
        >= min(MIN_MATCHING_HEADINGS, len(template.fields))
    ]
    best = max(fitting_templates, key=lambda each: _fit_key(each, headings, title), default=None)
    if best is None:
        return None
    return Form(
        name=best.name,
        path=best.path,
        fields=_read_answers(best.fields, sections),
    )


def _count_matching_headings(template: _Template, headings: Collection[str]) -> int:
    """Return how many of the template's headings the description has."""
    return sum(_normalize(template_field.label) in headings for template_field in template.fields)


def _fit_key(template: _Template, headings: Collection[str], title: str) -> tuple[int, float, bool]:
    """Return the sort key of a template: the better it fits, the larger.

    It consists of the number of the template's headings that the description has, their share, and
    whether the title starts with the template's title.
    """
    matching = _count_matching_headings(template, headings)
    has_title_prefix = bool(template.title) and title.casefold().startswith(
        template.title.casefold()
    )
    return matching, matching / len(template.fields), has_title_prefix


def _read_answers(
    template_fields: Sequence[_Field], sections: Sequence[_Section]
) -> tuple[FormField, ...]:
    """Return the fields with the state of their answers.

    A heading that is not in the template was added by the author; it is part of the answer above
    it.
    """
    answers: dict[str, list[str]] = {}
    labels = {_normalize(template_field.label) for template_field in template_fields}
    current: list[str] = []
    for section in sections:
        if _normalize(section.label) in labels:
            current = answers.setdefault(_normalize(section.label), [])
        else:
            current.append(section.label)
        current.append(section.content)
    return tuple(
        FormField(
            label=template_field.label,
            description=template_field.description,
            answer=_judge_answer(
                answers.get(_normalize(template_field.label)), template_field.default_text
            ),
        )
        for template_field in template_fields
    )


def _judge_answer(
    answer: Sequence[str] | None, default_text: str
) -> Literal["given", "empty", "missing"]:
    if answer is None:
        return "missing"
    return (
        "empty"
        if _normalize("\n".join(answer)) in {*_EMPTY_ANSWERS, _normalize(default_text)}
        else "given"
    )


def _read_template(path: str, content: bytes) -> _Template | None:
    """Return the template in a file, None if it is not a template or has no heading."""
    if len(content) > MAX_TEMPLATE_BYTES:
        return None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    text = text.replace("\r\n", "\n")
    is_form = PurePosixPath(path).suffix.lower() in {".yml", ".yaml"}
    front_matter = None if is_form else _FRONT_MATTER.match(text)
    metadata = _read_mapping(text if is_form else front_matter[1] if front_matter else "")
    template_fields = (
        _read_form_fields(metadata)
        if is_form
        else _read_markdown_fields(text[front_matter.end() if front_matter else 0 :])
    )
    unique_fields = tuple(
        {
            _normalize(template_field.label): template_field
            for template_field in template_fields
            if _normalize(template_field.label)
        }.values()
    )
    if not unique_fields:
        return None
    name = _single_line(metadata.get("name"), MAX_LABEL_CHARACTERS) or PurePosixPath(path).stem
    return _Template(
        name,
        path,
        _single_line(metadata.get("title"), MAX_LABEL_CHARACTERS),
        unique_fields[:MAX_FIELDS],
    )


def _read_form_fields(form: Mapping[str, Any]) -> Iterator[_Field]:
    """Yield the fields of a YAML form.

    Source:
    https://docs.github.com/communities/using-templates-to-encourage-useful-issues-and-pull-requests/syntax-for-githubs-form-schema
    """
    body = form.get("body")
    for element in body if isinstance(body, list) else ():
        attributes = element.get("attributes") if isinstance(element, dict) else None
        if isinstance(attributes, dict) and element.get("type") in _FIELD_TYPES:
            default_text = attributes.get("value")
            yield _Field(
                _single_line(attributes.get("label"), MAX_LABEL_CHARACTERS),
                _single_line(attributes.get("description"), MAX_DESCRIPTION_CHARACTERS),
                default_text if isinstance(default_text, str) else "",
            )


def _read_markdown_fields(text: str) -> Iterator[_Field]:
    """Yield the headings of a markdown template. The text and comments below describe each."""
    sections = _sections(text)
    levels = [section.level for section in sections[1:]] + [0]
    for section, next_level in zip(sections, levels, strict=False):
        if not section.content.strip() and next_level > section.level:
            continue  # a heading that only groups the ones below it
        description = re.sub(r"<!-{2,}|(?<!-)-{2,}>", " ", section.content)
        default_text = re.sub(r"<!--.*?(?:-->|\Z)", "", section.content, flags=re.DOTALL)
        yield _Field(
            _single_line(section.label, MAX_LABEL_CHARACTERS),
            _single_line(description, MAX_DESCRIPTION_CHARACTERS),
            default_text,
        )


def _read_mapping(text: str) -> Mapping[str, Any]:
    """Return the mapping in a YAML text, with scalars as text; empty if there is none."""
    try:
        data = read_yaml(text, texts=True)
    except yaml.YAMLError:
        return {}
    return data if isinstance(data, dict) else {}


def _sections(text: str) -> list[_Section]:
    """Return the headings of a text and what is below each. A line in bold counts as a heading.

    Headings within fenced code blocks are ignored:
    https://spec.commonmark.org/0.31.2/#fenced-code-blocks
    """
    sections: list[tuple[str, int, list[str]]] = []
    fence = previous_line = ""
    for line in text.split("\n"):
        fence_mark = _FENCE.match(line)
        if fence_mark and not fence:
            fence = fence_mark[1]
        elif (
            fence_mark and fence_mark[1].startswith(fence) and not line[fence_mark.end() :].strip()
        ):
            fence = ""
        label, level = ("", 0) if fence or fence_mark else _heading(line, previous_line)
        if label and label == previous_line.strip() and sections:
            sections[-1][2].pop()  # the underline makes the line above a heading
        if label:
            sections.append((label, level, []))
        elif sections:
            sections[-1][2].append(line)
        previous_line = "" if fence or fence_mark or label else line
    return [_Section(label, level, "\n".join(lines)) for label, level, lines in sections]


def _heading(line: str, previous_line: str) -> tuple[str, int]:
    """Return text and level of the heading that a line is, or that it makes of the line before it.

    Returns "" and 0 if it is neither.
    """
    if len(line) > _MAX_HEADING_CHARACTERS:
        return "", 0
    if match := _HEADING.fullmatch(line):
        return match[2].rstrip(" \t").rstrip("#").rstrip(" \t"), len(match[1])
    if match := _BOLD.fullmatch(line):
        return match[1] or match[2], 7
    if 0 < len(previous_line.strip()) <= _MAX_HEADING_CHARACTERS and (
        match := _UNDERLINE.fullmatch(line)
    ):
        return previous_line.strip(), 1 if match[1] == "=" else 2
    return "", 0


def _normalize(text: str) -> str:
    """Return the text in a form for comparison, without case and marks for bold or code."""
    without_marks = re.sub(r"[*_`\ufe0f]", "", without_invisible(text))
    return " ".join(without_marks.split()).rstrip(":").strip().casefold()


def _single_line(value: Any, limit: int) -> str:
    """Return the text on one line, shortened to `limit` characters; "" if it is no text."""
    if not isinstance(value, str):
        return ""
    return shorten_text(" ".join(without_invisible(value).split()), limit)
