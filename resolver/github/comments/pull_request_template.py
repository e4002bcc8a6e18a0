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
from resolver.github.text.markdown import markdown_parser, quieted
from resolver.models.repository import FOLDERS, template_path

logger = logging.getLogger("resolver.github")

REPOSITORY = ".github"
"""Name of the repository that contains an owner's default files."""

LARGEST = 20_000
"""Maximum size of a template in bytes."""


def with_default_template(access: GitHubAccess, report: Report) -> Report:
    """Return the report, with the owner's template if its repository has none. Never raises.

    It sends a single request if the owner has no `.github` repository.
    """
    owner, _, name = report.trigger.repository.partition("/")
    if report.conventions.template.strip() or name.casefold() == REPOSITORY:
        return report
    hasty = access.in_haste()
    try:
        with hasty.asking(f"read the template of {owner}/{REPOSITORY}", "contents: read"):
            template = _template(hasty.client().get_repo(f"{owner}/{REPOSITORY}"))
    except ForgeError as error:
        logger.warning("%s", error.what)
        return report
    conventions = report.conventions.model_copy(update={"template": template})
    return report.model_copy(update={"conventions": conventions})


def _template(repository: Repository) -> str:
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
    for folder in [each for each in files if each.type == "dir" and each.path.lower() in FOLDERS]:
        within = repository.get_contents(folder.path)
        files += within if isinstance(within, list) else []
    path = template_path([each.path for each in files if each.type == "file"])
    found = next((each for each in files if each.path == path), None)
    if found is None or found.size > LARGEST:
        return ""
    try:
        text = found.decoded_content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return ""
    return "" if "\0" in text else text


class Part(StrEnum):
    """The kinds of information about a change that a template may ask for, in display order."""

    ISSUE = "issue"
    WARNING = "warning"
    VERIFICATION = "verification"
    WHAT = "what"
    WHY = "why"
    CHANGE = "change"
    TESTED = "tested"
    LOOK = "look"
    CHANGELOG = "changelog"
    RUN = "run"


class Fact(StrEnum):
    """The statements on checkboxes that can be verified without asking anybody."""

    TESTS = "tests"
    DOCS = "docs"
    CHANGELOG = "changelog"
    ISSUE = "issue"


_ASKED: tuple[tuple[Part | None, str], ...] = (
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
_PATTERNS = tuple((part, re.compile(pattern, re.I)) for part, pattern in _ASKED)

_HOME: dict[Part, tuple[Part, ...]] = {
    Part.WHAT: (Part.CHANGE, Part.WHY),
    Part.WHY: (Part.WHAT, Part.CHANGE),
    Part.CHANGE: (Part.WHAT, Part.WHY),
    Part.TESTED: (Part.CHANGE, Part.WHAT, Part.WHY),
    Part.LOOK: (Part.CHANGE, Part.WHAT, Part.WHY),
}
"""Headings that can hold a part for which the template has no heading, best one first."""

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
"""Labels that a checkbox must have to be ticked.

They say that something exists, never that it is good or that it passes.
"""


@dataclass(frozen=True)
class _Section:
    """A heading with the lines below it; `heading` is "" for the text before the first heading.

    `words` is the heading without markup. `level` is 1 to 6, 7 for a line in bold, 0 for no
    heading.
    """

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
    """Return the filled-in template, or None if it asks for nothing that is known.

    `parts` maps each part to markdown, "" if it is unknown. `label` returns the name of a part, ""
    if it has none. `nobody` is the text for a heading that would otherwise be empty.
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
            continue  # The changelog is mentioned only in templates that ask for it.
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
    """Return the part below a heading of its own, if it has a name."""
    name = label(part)
    return f"### {name}\n\n{text}" if name else text


def text_beneath(template: str, facts: frozenset[Fact], *, own_issue: int | None) -> str:
    """Return the headings and checkboxes of a template that cannot be filled in.

    They are put below Resolver's own sections.
    """
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
        return None  # A section that has only checkboxes is a checklist, whatever its heading says.
    found = (part for part, pattern in _PATTERNS if pattern.search(section.words))
    return next(found, None)


def _written(
    section: _Section,
    given: Sequence[str],
    facts: frozenset[Fact],
    nobody: str,
    next_level: int,
) -> str:
    """Return the section with `given` in place of its placeholder text.

    A heading that is followed by a deeper one may stay empty; any other empty one gets `nobody`.
    """
    form = _form(section.body, facts)
    if given:
        return "\n\n".join(filter(None, [section.heading, *given, form]))
    if not section.heading:
        return form
    rest = form or ("" if next_level > section.level else nobody)
    return "\n\n".join(filter(None, [section.heading, rest]))


def _form(body: str, facts: frozenset[Fact]) -> str:
    """Return the parts of a section that a person can tick.

    These are its checkboxes with their continuation lines and the line with a colon that introduces
    them, and its tables that have a column for ticks. All other text is dropped: it consists of
    instructions, examples, or statements that nobody has verified.
    """
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
    """Return the table without its ticks, or "" if the block is no table with cells to tick."""
    rows = [_TICK_CELL.sub(r"\1 ", row) for row in block.strip().split("\n")]
    is_table = all(map(_TABLE_ROW.fullmatch, rows))
    return "\n".join(rows) if is_table and any(map(_EMPTY_CELL.search, rows[2:])) else ""


def _ticked(text: str, facts: frozenset[Fact]) -> str:
    """Tick the boxes whose statement is a known fact, and untick all others."""

    def ticked(found: re.Match[str]) -> str:
        label = re.sub(r"[*_`]", "", found[3]).strip()
        is_true = any(fact in facts and pattern.search(label) for fact, pattern in _FACT_PATTERNS)
        return f"{found[1]}[{'x' if is_true else ' '}]{found[2]}{found[3]}"

    return _BOX.sub(ticked, text)


def _sections(text: str) -> list[_Section]:
    """Split the template before each heading. A line that is all bold counts as a heading."""
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
