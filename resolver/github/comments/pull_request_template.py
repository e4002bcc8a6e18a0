"""The repository's pull request template, filled in with what is known of a change.

Its headings stay, its comments go; what we know stands below the heading that asks for it, and
what no heading asks for stands above the first. Of its other words only what a person can tick
stays, without a tick that is not a fact: what a template says of a change before there is one
("No breaking changes", four ticked types) may not be true.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from resolver.github.text.escape import quieted
from resolver.github.text.hidden_text import strip_hidden
from resolver.github.text.markdown import markdown_parser


class Part(StrEnum):
    """What is known of a change, by what a template asks for."""

    ISSUE = "issue"
    WARNING = "warning"
    WHAT = "what"
    WHY = "why"
    CHANGE = "change"
    TESTED = "tested"
    LOOK = "look"
    CHANGELOG = "changelog"
    RUN = "run"


class Fact(StrEnum):
    """What a checkbox may say that is known without asking anybody."""

    TESTS = "tests"
    DOCS = "docs"
    CHANGELOG = "changelog"
    ISSUE = "issue"


_ASKED: tuple[tuple[Part | None, str], ...] = (
    # in this order: a checklist with tests in its name is a checklist
    (None, r"check ?list|type of (?:the )?(?:change|pr)|types of changes|breaking"),
    (None, r"before (?:you )?(?:submit|merg)|licen[cs]e|deploy|roll ?back"),
    (Part.CHANGELOG, r"release notes?|change ?log|news (?:entry|fragment)|what['’]s new"),
    (None, r"screen ?shots?|screencasts?|demo|^\W*(?:reviewers?|assignees?|authors?)\W*$"),
    (None, r"^\W*(?:pull request|pr)(?: template)?\W*$"),
    (Part.TESTED, r"tests?\b|tested|testing|verif(?:y|ied|ication)|\bqa\b|reproduc|validat"),
    (Part.LOOK, r"review|look at|notes?\b|remarks?|risks?|remaining|follow.?ups?|limitations?"),
    (Part.LOOK, r"additional|other (?:comments?|information)|further comments?"),
    (Part.WHY, r"(?:problem|issue|bug) (?:descri|summary)"),
    (Part.WHY, r"(?:descri\w*|summary)(?: of)?(?: the| your)? (?:problem|issue|bug)"),
    # "Brief description of what is fixed" asks for no issue's number
    (Part.WHAT, r"descri|summary|overview"),
    (Part.ISSUE, r"issues?\b|tickets?|fix(?:es|ed)\b|closes?\b|closing|resolves?\b"),
    (Part.ISSUE, r"related|references?|links?\b"),
    (Part.WHY, r"why|motivat|reason|context|background|problem|root cause|rationale|purpose"),
    (Part.WHAT, r"descri|summary|overview|what (?:does|is|do)\b|about|intent|^\W*what\W*$"),
    (
        Part.CHANGE,
        r"change[sd]?\b|propos|implement|details?|solution|approach|\bhow\b|what|\bfix\b",
    ),
)
_PATTERNS = tuple((part, re.compile(pattern, re.I)) for part, pattern in _ASKED)

_HOME: dict[Part, tuple[Part, ...]] = {
    Part.WHAT: (Part.CHANGE, Part.WHY),
    Part.WHY: (Part.WHAT, Part.CHANGE),
    Part.CHANGE: (Part.WHAT, Part.WHY),
    Part.TESTED: (Part.CHANGE, Part.WHAT, Part.WHY),
    Part.LOOK: (Part.CHANGE, Part.WHAT, Part.WHY),
}
"""Where a part goes that no heading asks for, if there is a heading for that."""

_HTML_HEADING = re.compile(r"<h([1-6])\b[^>]*>(.*)</h\1>", re.I)
_BOLD_LINE = re.compile(r"\*\*[^*\n]+\*\*:?|__[^_\n]+__:?")
_TICK_CELL = re.compile(
    r"(?<=\|)([ \t]*)(?:\[[xX✓✔]\]|[xX✓✔☑✅🗹]|:(?:heavy|white)_check_mark:"
    r"|:ballot_box_with_check:)\ufe0f?(?=[ \t]*\|)"
)
_EMPTY_CELL = re.compile(r"\|[ \t]*\|")
_TABLE_ROW = re.compile(r"[ \t]*\|.*\|[ \t]*")
_BOX = re.compile(r"^(\s*(?:[-*+]|\d{1,9}[.)])\s+)\[[ xX]\](\s+)(.*)$", re.M)
_CLAIM = r"^\W*(?:i(?:'ve| have)?|we(?:'ve| have)?|this (?:pr|pull request|change))?\W*"
_DONE = r"(?: (?:is|are|was|were|has been|have been))? (?:added|updated|included)\W*$"
_FACTS: tuple[tuple[Fact, str], ...] = (
    (
        Fact.TESTS,
        _CLAIM
        + r"(?:add|updat|includ|writ|wrote)\w*(?: (?:new|unit|the|or|some|updated))* tests?\W*$",
    ),
    (Fact.TESTS, r"^\W*(?:unit )?tests?" + _DONE),
    (Fact.DOCS, _CLAIM + r"(?:add|updat)\w*(?: (?:the|relevant|any))* (?:docs?|documentation)\W*$"),
    (Fact.DOCS, r"^\W*(?:docs?|documentation)" + _DONE),
    (Fact.CHANGELOG, _CLAIM + r"(?:add|updat)\w*(?: (?:the|an?|entry|to|in))* change ?log\W*$"),
    (Fact.CHANGELOG, r"^\W*change ?log(?: entry)?" + _DONE),
    (Fact.ISSUE, _CLAIM + r"(?:link|referenc)\w*(?: (?:to|the|an?|related|existing))* issue\W*$"),
)
_FACT_PATTERNS = tuple((fact, re.compile(pattern, re.I)) for fact, pattern in _FACTS)
"""What a box may say to be ticked: that something is there, never that it is good or passes."""


@dataclass(frozen=True)
class _Section:
    """A heading's own lines, "" before the first one, and the lines below it."""

    heading: str
    words: str
    level: int
    body: str


def fill_template(
    template: str,
    parts: Mapping[Part, str],
    facts: frozenset[Fact],
    *,
    own_issue: int | None,
    label: Callable[[Part], str],
    nobody: str,
) -> str | None:
    """The template with the parts in it; None where it asks for nothing that we know.

    parts: markdown, "" for what is not known. label: what a part is called, "" for
    nothing. nobody: what stands below a heading that has nothing else.
    """
    clean = quieted(strip_hidden(template).text, own_issue=own_issue).strip()
    sections = _sections(clean)
    wanted = [_asked_by(section) for section in sections]
    known = {part: text.strip() for part, text in parts.items() if text.strip()}
    if not {Part.WHAT, Part.WHY, Part.CHANGE, Part.TESTED} & set(wanted):
        return None
    homes: dict[int, list[str]] = {}
    alone: list[str] = []
    for part in Part:
        if part not in known or part is Part.RUN:
            continue
        home = _home(part, wanted)
        if home is None and part is Part.CHANGELOG:
            continue  # it is told where it is asked for
        if home is None:
            alone.append(with_heading(part, known[part], label))
        elif wanted[home] is part:
            homes.setdefault(home, []).insert(0, known[part])
        else:
            name = label(part)
            homes.setdefault(home, []).append(
                f"**{name}**\n\n{known[part]}" if name else known[part]
            )
    below = [section.level for section in sections[1:]] + [0]
    written = [
        _written(section, homes.get(index, []), facts, nobody, below[index])
        for index, section in enumerate(sections)
    ]
    return "\n\n".join(text for text in [*alone, *written, known.get(Part.RUN, "")] if text)


def with_heading(part: Part, text: str, label: Callable[[Part], str]) -> str:
    """A part that stands on its own, below a heading where it has a name."""
    name = label(part)
    return f"### {name}\n\n{text}" if name else text


def text_beneath(template: str, facts: frozenset[Fact], *, own_issue: int | None) -> str:
    """What a person can tick in a template that can't be filled in, below its headings, to stand
    below a body of our own."""
    sections = _sections(quieted(strip_hidden(template).text, own_issue=own_issue).strip())
    kept = ((section.heading, _form(section.body, facts)) for section in sections)
    return "\n\n".join("\n\n".join(filter(None, each)) for each in kept if each[1])


def _home(part: Part, wanted: Sequence[Part | None]) -> int | None:
    for candidate in (part, *_HOME.get(part, ())):
        if candidate in wanted:
            return wanted.index(candidate)
    return None


def _asked_by(section: _Section) -> Part | None:
    if not section.heading:
        return None
    if _BOX.search(section.body) and not _BOX.sub("", section.body).strip():
        return None  # boxes alone are a checklist, whatever it is called
    found = (part for part, pattern in _PATTERNS if pattern.search(section.words))
    return next(found, None)


def _written(
    section: _Section,
    given: Sequence[str],
    facts: frozenset[Fact],
    nobody: str,
    next_level: int,
) -> str:
    """The section: what is given in the place of its placeholder, or as it was. A heading that only
    has others below it needs nothing else."""
    form = _form(section.body, facts)
    if given:
        return "\n\n".join(filter(None, [section.heading, *given, form]))
    if not section.heading:
        return form
    rest = form or ("" if next_level > section.level else nobody)
    return "\n\n".join(filter(None, [section.heading, rest]))


def _form(body: str, facts: frozenset[Fact]) -> str:
    """What a person can tick of a section: its boxes, each with the lines that belong to it and the
    line with a colon that leads to them, and its tables with a column for ticks. Its other words
    are instructions, examples, or say what nobody knows."""
    blocks = [_ticked(block, facts) for block in re.split(r"\n[ \t]*\n", body.strip("\n"))]
    kept: list[str] = []
    for at, block in enumerate(blocks):
        following = blocks[at + 1] if at + 1 < len(blocks) else ""
        form = _boxes_of(block) or _tick_table(block)
        if form:
            kept.append(form)
        elif block.rstrip().endswith(":") and _BOX.match(following) and "\n" not in block.strip():
            kept.append(block.strip())
    return "\n\n".join(kept)


def _boxes_of(block: str) -> str:
    lines, kept, inside = block.split("\n"), list[str](), False
    for at, line in enumerate(lines):
        inside = bool(_BOX.match(line)) or (inside and line[:1] in {" ", "\t"})
        leads = line.rstrip().endswith(":") and any(map(_BOX.match, lines[at + 1 : at + 2]))
        if inside or leads:
            kept.append(line)
    return "\n".join(kept)


def _tick_table(block: str) -> str:
    """The table without its ticks; "" for a block that is no table, or has no cells to tick."""
    rows = [_TICK_CELL.sub(r"\1 ", row) for row in block.strip().split("\n")]
    is_table = all(map(_TABLE_ROW.fullmatch, rows))
    return "\n".join(rows) if is_table and any(map(_EMPTY_CELL.search, rows[2:])) else ""


def _ticked(text: str, facts: frozenset[Fact]) -> str:
    """Each box with a tick where what it says is a fact, and only there."""

    def ticked(found: re.Match[str]) -> str:
        label = re.sub(r"[*_`]", "", found[3]).strip()
        is_true = any(fact in facts and pattern.search(label) for fact, pattern in _FACT_PATTERNS)
        return f"{found[1]}[{'x' if is_true else ' '}]{found[2]}{found[3]}"

    return _BOX.sub(ticked, text)


def _sections(text: str) -> list[_Section]:
    """The template, cut before each heading; a line in bold alone is one as well."""
    lines = text.split("\n")
    tokens = markdown_parser().parse(text)
    starts: list[tuple[int, int, str, int]] = []
    for token, inline in zip(tokens, [*tokens[1:], *tokens[-1:]], strict=True):
        if token.level != 0 or token.map is None:
            continue
        start, after = token.map
        words = inline.content.strip()
        if token.type == "heading_open":
            starts.append((start, after, words, int(token.tag[1:])))
        elif token.type == "paragraph_open" and _BOLD_LINE.fullmatch(words):
            starts.append((start, after, words.strip(" *_:"), 7))
        elif token.type == "html_block" and (
            found := _HTML_HEADING.fullmatch(token.content.strip())
        ):
            starts.append((start, after, re.sub(r"<[^>]*>", "", found[2]), int(found[1])))
    ends = [start for start, *_ in starts] + [len(lines)]
    sections = [_Section("", "", 0, "\n".join(lines[: ends[0]]).strip("\n"))]
    for (start, after, words, level), end in zip(starts, ends[1:], strict=True):
        heading = "\n".join(lines[start:after]).strip("\n")
        sections.append(_Section(heading, words, level, "\n".join(lines[after:end]).strip("\n")))
    return [s for s in sections if s.heading or s.body]
