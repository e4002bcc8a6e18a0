"""Fills in a repository's pull request template with what is known about a change.

The template's headings are kept and its comments are removed. Each known part is put below the
heading that asks for it; parts that no heading asks for come first. Of the rest of the template,
only checkboxes and tables to tick are kept, and a box is ticked only if its statement is known to
be true: text that a template asserts before there is a change ("No breaking changes", four ticked
types) may be false.

The template in the `.github` repository of an owner applies to all repositories of the owner that
have none of their own. Source:
https://docs.github.com/communities/setting-up-your-project-for-healthy-contributions/creating-a-default-community-health-file
"""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import github
from github.Repository import Repository

from resolver.errors import ForgeError
from resolver.github.client.access import GitHubAccess
from resolver.github.comments.report import Report
from resolver.github.text.hidden_text import strip_hidden
from resolver.github.text.markdown import markdown_parser, without_notifications
from resolver.models.repository import FOLDERS, template_path

logger = logging.getLogger("resolver.github")

DEFAULTS_REPOSITORY = ".github"
"""Name of the repository that contains an owner's default files."""

MAX_TEMPLATE_BYTES = 20_000
"""Maximum size of a template in bytes."""


def with_default_template(access: GitHubAccess, report: Report) -> Report:
    """Return the report, with the owner's template if its repository has none. Never raises.

    It sends a single request if the owner has no `.github` repository.
    """
    owner, _, name = report.trigger.repository.partition("/")
    if report.conventions.template.strip() or name.casefold() == DEFAULTS_REPOSITORY:
        return report
    hasty_access = access.with_short_timeouts()
    try:
        with hasty_access.asking(
            f"read the template of {owner}/{DEFAULTS_REPOSITORY}", "contents: read"
        ):
            template = _read_default_template(
                hasty_access.client().get_repo(f"{owner}/{DEFAULTS_REPOSITORY}")
            )
    except ForgeError as error:
        logger.warning("%s", error.what)
        return report
    conventions = report.conventions.model_copy(update={"template": template})
    return report.model_copy(update={"conventions": conventions})


def _read_default_template(repository: Repository) -> str:
    """Return the template in the repository, "" if there is none.

    A repository that doesn't exist, or is private, has none: GitHub uses only public ones.
    """
    try:
        if repository.complete().private:
            return ""
        root = repository.get_contents("")
    except github.UnknownObjectException:
        return ""
    files = list(root) if isinstance(root, list) else []
    for folder in [file for file in files if file.type == "dir" and file.path.lower() in FOLDERS]:
        contents = repository.get_contents(folder.path)
        files += contents if isinstance(contents, list) else []
    path = template_path([file.path for file in files if file.type == "file"])
    entry = next((file for file in files if file.path == path), None)
    if entry is None or entry.size > MAX_TEMPLATE_BYTES:
        return ""
    try:
        text = entry.decoded_content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return ""
    return "" if "\0" in text else text


class Part(StrEnum):
    """The kinds of information about a change that a template may ask for, in display order."""

    WARNING = "warning"
    VERDICT = "verdict"
    ISSUE = "issue"
    WHAT = "what"
    WHY = "why"
    CHANGE = "change"
    VERIFICATION = "verification"
    TESTED = "tested"
    LOOK = "look"
    LEFT = "left"
    CHANGELOG = "changelog"
    RUN = "run"


class Fact(StrEnum):
    """The statements on checkboxes that can be verified without asking anybody."""

    TESTS = "tests"
    DOCS = "docs"
    CHANGELOG = "changelog"
    ISSUE = "issue"


_HEADING_PATTERNS: tuple[tuple[Part | None, str], ...] = (
    # The first match wins: a checklist that mentions tests is a checklist.
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
    # "Brief description of what is fixed" does not ask for an issue number.
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
_COMPILED_HEADING_PATTERNS = tuple(
    (part, re.compile(pattern, re.I)) for part, pattern in _HEADING_PATTERNS
)

_FALLBACK_PARTS: dict[Part, tuple[Part, ...]] = {
    Part.WHAT: (Part.CHANGE, Part.WHY),
    Part.WHY: (Part.WHAT, Part.CHANGE),
    Part.CHANGE: (Part.WHAT, Part.WHY),
    Part.TESTED: (Part.CHANGE, Part.WHAT, Part.WHY),
    Part.LOOK: (Part.CHANGE, Part.WHAT, Part.WHY),
    Part.LEFT: (Part.LOOK, Part.CHANGE, Part.WHAT, Part.WHY),
}
"""Headings that can hold a part for which the template has no heading, best one first."""

_HTML_HEADING = re.compile(r"<h([1-6])\b[^>]*>(.*)</h\1>", re.I)
_BOLD_LINE = re.compile(r"\*\*[^*\n]+\*\*:?|__[^_\n]+__:?")
_TICKED_CELL = re.compile(
    r"(?<=\|)([ \t]*)(?:\[[xX✓✔]\]|[xX✓✔☑✅🗹]|:(?:heavy|white)_check_mark:"
    r"|:ballot_box_with_check:)\ufe0f?(?=[ \t]*\|)"
)
_EMPTY_CELL = re.compile(r"\|[ \t]*\|")
_TABLE_ROW = re.compile(r"[ \t]*\|.*\|[ \t]*")
_CHECKBOX = re.compile(r"^(\s*(?:[-*+]|\d{1,9}[.)])\s+)\[[ xX]\](\s+)(.*)$", re.M)
_CLAIM_START = r"^\W*(?:i(?:'ve| have)?|we(?:'ve| have)?|this (?:pr|pull request|change))?\W*"
_CLAIM_END = r"(?: (?:is|are|was|were|has been|have been))? (?:added|updated|included)\W*$"
_FACTS: tuple[tuple[Fact, str], ...] = (
    (
        Fact.TESTS,
        _CLAIM_START
        + r"(?:add|updat|includ|writ|wrote)\w*(?: (?:new|unit|the|or|some|updated))* tests?\W*$",
    ),
    (Fact.TESTS, r"^\W*(?:unit )?tests?" + _CLAIM_END),
    (
        Fact.DOCS,
        _CLAIM_START + r"(?:add|updat)\w*(?: (?:the|relevant|any))* (?:docs?|documentation)\W*$",
    ),
    (Fact.DOCS, r"^\W*(?:docs?|documentation)" + _CLAIM_END),
    (
        Fact.CHANGELOG,
        _CLAIM_START + r"(?:add|updat)\w*(?: (?:the|an?|entry|to|in))* change ?log\W*$",
    ),
    (Fact.CHANGELOG, r"^\W*change ?log(?: entry)?" + _CLAIM_END),
    (
        Fact.ISSUE,
        _CLAIM_START + r"(?:link|referenc)\w*(?: (?:to|the|an?|related|existing))* issue\W*$",
    ),
)
_FACT_PATTERNS = tuple((fact, re.compile(pattern, re.I)) for fact, pattern in _FACTS)
"""Labels that a checkbox must have to be ticked.

They say that something exists, never that it is good or that it passes.
"""


@dataclass(frozen=True)
class _Section:
    """A heading with the lines below it; `heading` is "" for the text before the first heading.

    `text` is the heading without markup. `level` is 1 to 6, 7 for a line in bold, 0 for no
    heading.
    """

    heading: str
    text: str
    level: int
    body: str


def fill_template(
    template: str,
    parts: Mapping[Part, str],
    facts: frozenset[Fact],
    *,
    own_issue: int | None,
    label: Callable[[Part], str],
    empty_text: str,
) -> str | None:
    """Return the filled-in template, or None if it asks for nothing that is known.

    `parts` maps each part to markdown, "" if it is unknown. `label` returns the name of a part, ""
    if it has none. `empty_text` is the text for a heading that would otherwise be empty.
    """
    clean = without_notifications(strip_hidden(template).text, own_issue=own_issue).strip()
    sections = _split_sections(clean)
    parts_by_section = [_part_of_section(section) for section in sections]
    known_parts = {part: text.strip() for part, text in parts.items() if text.strip()}
    if not {Part.WHAT, Part.WHY, Part.CHANGE, Part.TESTED} & set(parts_by_section):
        return None
    texts_by_section: dict[int, list[str]] = {}
    own_sections: list[str] = []
    for part in Part:
        if part not in known_parts or part is Part.RUN:
            continue
        section_index = _find_section(part, parts_by_section)
        if section_index is None and part is Part.CHANGELOG:
            continue  # The changelog is mentioned only in templates that ask for it.
        if section_index is None:
            own_sections.append(with_heading(part, known_parts[part], label))
        elif parts_by_section[section_index] is part:
            texts_by_section.setdefault(section_index, []).insert(0, known_parts[part])
        else:
            name = label(part)
            texts_by_section.setdefault(section_index, []).append(
                f"**{name}**\n\n{known_parts[part]}" if name else known_parts[part]
            )
    next_levels = [section.level for section in sections[1:]] + [0]
    filled = [
        _fill_section(
            section, texts_by_section.get(index, []), facts, empty_text, next_levels[index]
        )
        for index, section in enumerate(sections)
    ]
    return "\n\n".join(
        text for text in [*own_sections, *filled, known_parts.get(Part.RUN, "")] if text
    )


def with_heading(part: Part, text: str, label: Callable[[Part], str]) -> str:
    """Return the part below a heading of its own, if it has a name."""
    name = label(part)
    return f"### {name}\n\n{text}" if name else text


def unfilled_template_text(template: str, facts: frozenset[Fact], *, own_issue: int | None) -> str:
    """Return the headings and checkboxes of a template that cannot be filled in.

    They are put below Resolver's own sections.
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


def _find_section(part: Part, parts_by_section: Sequence[Part | None]) -> int | None:
    for candidate in (part, *_FALLBACK_PARTS.get(part, ())):
        if candidate in parts_by_section:
            return parts_by_section.index(candidate)
    return None


def _part_of_section(section: _Section) -> Part | None:
    if not section.heading:
        return None
    if _CHECKBOX.search(section.body) and not _CHECKBOX.sub("", section.body).strip():
        return None  # A section that has only checkboxes is a checklist, whatever its heading says.
    matching_parts = (
        part for part, pattern in _COMPILED_HEADING_PATTERNS if pattern.search(section.text)
    )
    return next(matching_parts, None)


def _fill_section(
    section: _Section,
    texts: Sequence[str],
    facts: frozenset[Fact],
    empty_text: str,
    next_level: int,
) -> str:
    """Return the section with `texts` in place of its placeholder text.

    A heading that is followed by a deeper one may stay empty; any other empty one gets
    `empty_text`.
    """
    form = _checkbox_lines(section.body, facts)
    if texts:
        return "\n\n".join(filter(None, [section.heading, *texts, form]))
    if not section.heading:
        return form
    placeholder = form or ("" if next_level > section.level else empty_text)
    return "\n\n".join(filter(None, [section.heading, placeholder]))


def _checkbox_lines(body: str, facts: frozenset[Fact]) -> str:
    """Return the parts of a section that a person can tick.

    These are its checkboxes with their continuation lines and the line with a colon that introduces
    them, and its tables that have a column for ticks. All other text is dropped: it consists of
    instructions, examples, or statements that nobody has verified.
    """
    blocks = [_tick_boxes(block, facts) for block in re.split(r"\n[ \t]*\n", body.strip("\n"))]
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


def _tick_boxes(text: str, facts: frozenset[Fact]) -> str:
    """Tick the boxes whose statement is a known fact, and untick all others."""

    def tick_box(match: re.Match[str]) -> str:
        label = re.sub(r"[*_`]", "", match[3]).strip()
        is_true = any(fact in facts and pattern.search(label) for fact, pattern in _FACT_PATTERNS)
        return f"{match[1]}[{'x' if is_true else ' '}]{match[2]}{match[3]}"

    return _CHECKBOX.sub(tick_box, text)


def _split_sections(text: str) -> list[_Section]:
    """Split the template before each heading. A line that is all bold counts as a heading."""
    lines = text.split("\n")
    tokens = markdown_parser().parse(text)
    starts: list[tuple[int, int, str, int]] = []
    for token, inline in zip(tokens, [*tokens[1:], *tokens[-1:]], strict=True):
        if token.level != 0 or token.map is None:
            continue
        start, body_start = token.map
        heading_text = inline.content.strip()
        if token.type == "heading_open":
            starts.append((start, body_start, heading_text, int(token.tag[1:])))
        elif token.type == "paragraph_open" and _BOLD_LINE.fullmatch(heading_text):
            starts.append((start, body_start, heading_text.strip(" *_:"), 7))
        elif token.type == "html_block" and (
            match := _HTML_HEADING.fullmatch(token.content.strip())
        ):
            starts.append((start, body_start, re.sub(r"<[^>]*>", "", match[2]), int(match[1])))
    ends = [start for start, *_ in starts] + [len(lines)]
    sections = [_Section("", "", 0, "\n".join(lines[: ends[0]]).strip("\n"))]
    for (start, body_start, heading_text, level), end in zip(starts, ends[1:], strict=True):
        heading = "\n".join(lines[start:body_start]).strip("\n")
        sections.append(
            _Section(heading, heading_text, level, "\n".join(lines[body_start:end]).strip("\n"))
        )
    return [section_ for section_ in sections if section_.heading or section_.body]
