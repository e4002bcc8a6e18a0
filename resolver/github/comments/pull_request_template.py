"""Completes a repository's pull request template with the text that the agent wrote for it.

The agent gets the raw template and writes the text of the pull request. Nothing of that text is
trusted: the headings and checkboxes of the result are the template's own, what the agent wrote
below a heading is escaped, and what it left of the template's instructions, examples and claims is
removed. A box is ticked only if a recorded fact shows that its statement is true: text that a
template asserts before there is a change ("No breaking changes", four ticked types) may be false,
and so may be the agent's ticks. A section without an answer is removed.
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from resolver.github.text.comment_markdown import safe_markdown
from resolver.github.text.hidden_text import strip_hidden
from resolver.github.text.markdown import (
    FENCE,
    block_parser,
    number_code_blocks,
    without_notifications,
)

MAX_ANSWER_CHARACTERS = 20_000
"""Maximum number of characters of the agent's text that are used."""


class CheckboxStatement(StrEnum):
    """The statements on checkboxes that can be verified without asking anybody."""

    TESTS = "tests"
    PASSING = "passing"
    DOCS = "docs"
    CHANGELOG = "changelog"
    ISSUE = "issue"


_HTML_HEADING = re.compile(r"<h([1-6])\b[^>]*>(.*)</h\1>", re.I)
_BOLD_LINE = re.compile(r"\*\*[^*\n]+\*\*:?|__[^_\n]+__:?")
_TICKED_CELL = re.compile(
    r"(?<=\|)([ \t]*)(?:\[[xX✓✔]\]|[xX✓✔☑✅🗹]|:(?:heavy|white)_check_mark:"
    r"|:ballot_box_with_check:)\ufe0f?(?=[ \t]*\|)"
)
_EMPTY_CELL = re.compile(r"\|[ \t]*\|")
_TABLE_ROW = re.compile(r"[ \t]*\|.*\|[ \t]*")
_PIPE_LINE = re.compile(r"[ \t]*\|.+")
"""A row of a table; the pipe at its end is optional."""

_UNFINISHED = re.compile(r"\W*(?:todo|tbd|x{3,}|\.{3}|…)\W*", re.I)
_CHECKBOX = re.compile(r"^(\s*(?:[-*+]|\d{1,9}[.)])\s+)\[[ xX]\](\s+)(.*)$", re.M)
_DESCRIPTION = re.compile(r"descri|summary|overview|what|propos|motivation", re.I)
_CLAIM_START = r"^\W*(?:i(?:'ve| have)?|we(?:'ve| have)?|this (?:pr|pull request|change))?\W*"
_CLAIM_END = r"(?: (?:is|are|was|were|has been|have been))? (?:added|updated|included)\W*$"
_FACTS: tuple[tuple[CheckboxStatement, str], ...] = (
    (
        CheckboxStatement.TESTS,
        _CLAIM_START
        + r"(?:add|updat|includ|writ|wrote)\w*(?: (?:new|unit|the|or|some|updated))* tests?\W*$",
    ),
    (CheckboxStatement.TESTS, r"^\W*(?:unit )?tests?" + _CLAIM_END),
    (
        CheckboxStatement.PASSING,
        r"^\W*(?:all )?(?:(?:new|existing|and|unit|the) )*tests (?:are )?pass(?:ing|ed)?\W*$",
    ),
    (
        CheckboxStatement.DOCS,
        _CLAIM_START + r"(?:add|updat)\w*(?: (?:the|relevant|any))* (?:docs?|documentation)\W*$",
    ),
    (CheckboxStatement.DOCS, r"^\W*(?:docs?|documentation)" + _CLAIM_END),
    (
        CheckboxStatement.CHANGELOG,
        _CLAIM_START + r"(?:add|updat)\w*(?: (?:the|an?|entry|to|in))* change ?log\W*$",
    ),
    (CheckboxStatement.CHANGELOG, r"^\W*change ?log(?: entry)?" + _CLAIM_END),
    (
        CheckboxStatement.ISSUE,
        _CLAIM_START + r"(?:link|referenc)\w*(?: (?:to|the|an?|related|existing))* issue\W*$",
    ),
)
_FACT_PATTERNS = tuple((fact, re.compile(pattern, re.I)) for fact, pattern in _FACTS)
"""Labels that a checkbox must have to be ticked.

They say what Resolver has recorded, and nothing more.
"""


@dataclass(frozen=True)
class _Section:
    """A heading with the lines below it; `heading` is "" for the text before the first heading.

    `name` is the heading without markup, in a form for comparison. `level` is 1 to 6, 7 for a line
    in bold, 0 for no heading.
    """

    heading: str
    name: str
    level: int
    body: str


def complete_template(
    template: str,
    answer: str,
    facts: frozenset[CheckboxStatement],
    *,
    own_issue: int | None,
    limit: int,
    forge_host: str = "",
) -> str | None:
    """Return the template with the agent's text, or None if the text does not follow the template.

    It follows the template if the template's headings are in their order, each at most once, and
    at least one of them has an answer.

    own_issue: number of the only issue that may be referenced; None for none.
    limit: maximum length of the text below one heading, in UTF-16 units.
    forge_host: the only host whose pages are linked.
    """
    sections = _split_sections(strip_hidden(template).text.strip())
    written_sections = _split_sections(strip_hidden(answer[:MAX_ANSWER_CHARACTERS]).text.strip())
    answers = _match_answers([section.name for section in sections], written_sections)
    if answers is None:
        return None
    template_texts = _TemplateTexts.read(template)
    texts = [
        safe_markdown(
            template_texts.remove_from(text),
            own_issue=own_issue,
            limit=limit,
            forge_host=forge_host,
        )
        for text in answers
    ]
    if not any(texts[1:] or texts):
        return None
    forms = [
        without_notifications(_checkbox_lines(section.body, facts), own_issue=own_issue)
        for section in sections
    ]
    return _join_sections(sections, texts, forms, own_issue)


def describe_below_heading(template: str, description: str) -> str:
    """Return a text for a template that the agent did not fill in, "" if there is no place for it.

    The description is put below the first heading that asks for one, without looking further: all
    else that is known about the change is in Resolver's own sections.
    """
    sections = _split_sections(strip_hidden(template).text.strip())
    for section in sections:
        if _DESCRIPTION.search(section.name) and not _CHECKBOX.search(section.body):
            return f"{section.heading}\n\n{description}"
    return ""


def template_form(
    template: str, facts: frozenset[CheckboxStatement], *, own_issue: int | None
) -> str:
    """Return the checkboxes of a template with the headings above them.

    They are put below Resolver's own text if there is no text for the template.
    """
    sections = _split_sections(
        without_notifications(strip_hidden(template).text, own_issue=own_issue).strip()
    )
    forms = ((section.heading, _checkbox_lines(section.body, facts)) for section in sections)
    return "\n\n".join(
        "\n\n".join(filter(None, heading_and_form))
        for heading_and_form in forms
        if heading_and_form[1]
    )


def _match_answers(names: Sequence[str], written: Sequence[_Section]) -> list[str] | None:
    """Return the text that was written below each of the template's headings.

    `names` are the headings; the first one is "", for the text above all others. A heading that is
    not the template's is part of the text above it. Returns None if the headings have another
    order, or if there are none of them.
    """
    answers: list[list[str]] = [[] for _ in names]
    positions: dict[str, list[int]] = {}
    for position, name in enumerate(names):
        positions.setdefault(name, []).append(position)
    current = 0
    for section in written:
        if not section.heading or section.name not in positions:
            answers[current] += [section.heading, section.body]
            continue
        following = positions[section.name]
        next_index = bisect_right(following, current)
        if next_index == len(following):
            return None
        current = following[next_index]
        answers[current].append(section.body)
    if current == 0 and len(names) > 1:
        return None
    return ["\n\n".join(filter(None, parts)) for parts in answers]


def _join_sections(
    sections: Sequence[_Section], texts: Sequence[str], forms: Sequence[str], own_issue: int | None
) -> str:
    """Return the sections that have a text or a form, or that are above a deeper one that has."""
    blocks: list[str] = []
    next_level = 0
    for section, text, form in reversed(list(zip(sections, texts, forms, strict=True))):
        if text or form or next_level > section.level > 0:
            heading = without_notifications(section.heading, own_issue=own_issue)
            blocks.append("\n\n".join(filter(None, (heading, text, form))))
            next_level = section.level
    return "\n\n".join(reversed(blocks))


@dataclass(frozen=True)
class _TemplateTexts:
    """What a template itself says, so that it can be told from an answer.

    texts: lines and code blocks, in a form for comparison.
    tick_tables: first rows of the tables with a column for ticks, in that form.
    """

    texts: frozenset[str]
    tick_tables: frozenset[str]

    @classmethod
    def read(cls, template: str) -> "_TemplateTexts":
        units = list(_split_units(re.sub(r"<!--|-->", "\n", template.replace("\r\n", "\n"))))
        lines = [line for unit in units for line in unit.split("\n")]
        tables = [unit.split("\n")[0] for unit in units if _tick_table(unit)]
        return cls(
            texts=frozenset(map(_normalize, (*units, *lines))) - {""},
            tick_tables=frozenset(map(_normalize, tables)),
        )

    def remove_from(self, answer: str) -> str:
        """Return an answer without the template's own text, without boxes and placeholders."""
        return "\n".join(filter(None, map(self._without_own, _split_units(answer)))).strip()

    def _without_own(self, unit: str) -> str:
        """Return a unit of an answer, " " for a blank one, "" if it is to be removed."""
        if _CHECKBOX.match(unit) or _UNFINISHED.fullmatch(unit):
            return ""
        rows = unit.split("\n")
        if len(rows) > 2 and _PIPE_LINE.fullmatch(rows[0]):
            own_rows = [row for row in rows[2:] if _normalize(row) not in self.texts]
            is_form = _normalize(rows[0]) in self.tick_tables
            return "\n".join([*rows[:2], *own_rows]) if own_rows and not is_form else ""
        return "" if _normalize(unit) in self.texts else unit or " "


def _split_units(text: str) -> Iterator[str]:
    """Yield the lines of a text. A fenced code block and the rows of a table are one unit each."""
    unit: list[str] = []
    previous_block = 0
    for line, block in number_code_blocks(text.split("\n")):
        is_same_code = block > 0 and block == previous_block
        is_next_row = not block and all(map(_PIPE_LINE.fullmatch, (line, *unit[-1:])))
        if unit and not is_same_code and not is_next_row:
            yield "\n".join(unit)
            unit = []
        unit.append(line)
        previous_block = block
    yield "\n".join(unit)


def _normalize(text: str) -> str:
    """Return the text in a form for comparison, without case, list markers and other markup."""
    without_marker = re.sub(r"^\s*(?:[-*+]|\d{1,9}[.)])\s", "", text)
    return " ".join(re.sub(r"[*_`|#>~:]", " ", without_marker).split()).casefold()


def _checkbox_lines(body: str, facts: frozenset[CheckboxStatement]) -> str:
    """Return the parts of a section that a person can tick.

    These are its checkboxes with their continuation lines and the line with a colon that introduces
    them, and its tables that have a column for ticks. All other text is dropped: it consists of
    instructions, examples, or statements that nobody has verified. What looks like a box in a code
    block is an example too, and could open a comment outside of it.
    """
    text = "\n".join(unit for unit in _split_units(body) if not FENCE.match(unit)).strip("\n")
    blocks = [_tick_boxes(block, facts) for block in re.split(r"\n[ \t]*\n", text)]
    kept_blocks: list[str] = []
    for index, block in enumerate(blocks):
        following = blocks[index + 1] if index + 1 < len(blocks) else ""
        form = _extract_checkboxes(block) or _tick_table(block)
        if form:
            kept_blocks.append(form)
        elif (
            block.rstrip().endswith(":")
            and _CHECKBOX.match(following)
            and "\n" not in block.strip()
        ):
            kept_blocks.append(block.strip())
    return "\n\n".join(kept_blocks)


def _extract_checkboxes(block: str) -> str:
    lines, kept_lines, is_in_item = block.split("\n"), list[str](), False
    for index, line in enumerate(lines):
        is_in_item = bool(_CHECKBOX.match(line)) or (is_in_item and line[:1] in {" ", "\t"})
        is_introduction = line.rstrip().endswith(":") and any(
            map(_CHECKBOX.match, lines[index + 1 : index + 2])
        )
        if is_in_item or is_introduction:
            kept_lines.append(line)
    return "\n".join(kept_lines)


def _tick_table(block: str) -> str:
    """Return the table without its ticks, or "" if the block is no table with cells to tick."""
    rows = [_TICKED_CELL.sub(r"\1 ", row) for row in block.strip().split("\n")]
    is_table = all(map(_TABLE_ROW.fullmatch, rows))
    return "\n".join(rows) if is_table and any(map(_EMPTY_CELL.search, rows[2:])) else ""


def _tick_boxes(text: str, facts: Collection[CheckboxStatement]) -> str:
    """Tick the boxes whose statement is a known fact, and untick all others."""

    def tick_box(match: re.Match[str]) -> str:
        label = re.sub(r"[*_`]", "", match[3]).strip()
        is_true = any(fact in facts and pattern.search(label) for fact, pattern in _FACT_PATTERNS)
        return f"{match[1]}[{'x' if is_true else ' '}]{match[2]}{match[3]}"

    return _CHECKBOX.sub(tick_box, text)


def _split_sections(text: str) -> list[_Section]:
    """Split a text before each heading. A line that is all bold counts as a heading.

    The first section is always the text before the first heading.
    """
    lines = text.split("\n")
    tokens = block_parser().parse(text)
    starts: list[tuple[int, int, str, int]] = [(0, 0, "", 0)]
    for token, inline in zip(tokens, [*tokens[1:], *tokens[-1:]], strict=True):
        if token.level != 0 or token.map is None:
            continue
        start, body_start = token.map
        heading_text = inline.content.strip()
        if token.type == "heading_open":
            starts.append((start, body_start, heading_text, int(token.tag[1:])))
        elif token.type == "paragraph_open" and _BOLD_LINE.fullmatch(heading_text):
            starts.append((start, body_start, heading_text, 7))
        elif token.type == "html_block" and (
            match := _HTML_HEADING.fullmatch(token.content.strip())
        ):
            starts.append((start, body_start, re.sub(r"<[^>]*>", "", match[2]), int(match[1])))
    ends = [start for start, *_ in starts[1:]] + [len(lines)]
    return [
        _Section(
            heading="\n".join(lines[start:body_start]).strip("\n"),
            name=_normalize(heading_text),
            level=level,
            body="\n".join(lines[body_start:end]).strip("\n"),
        )
        for (start, body_start, heading_text, level), end in zip(starts, ends, strict=True)
    ]
