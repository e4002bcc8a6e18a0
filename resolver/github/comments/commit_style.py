"""Detects how a repository writes its commit subjects, and writes a subject in that style.

The style is read from the newest subjects by fixed rules. If they show no consistent style, the
subject is left as it is.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

FEWEST = 5
"""Minimum number of subjects from which a style is derived."""

USUAL = 72
LONGEST = 100
"""Maximum lengths of a subject in characters.

USUAL is the default; LONGEST applies to a repository in which longer subjects are common.
"""

Kind = Literal["plain", "conventional", "brackets", "area", "issue", "ticket"]
Work = Literal["fix", "feat", "docs", "test", "ci"]

_WORDS_FOR: dict[Work, tuple[str, ...]] = {
    "fix": ("fix", "bugfix", "hotfix"),
    "feat": ("feat", "feature"),
    "docs": ("docs", "doc"),
    "test": ("test", "tests"),
    "ci": ("ci", "build", "chore"),
}
_EMOJI: dict[Work, tuple[str, str]] = {
    "fix": (":bug:", "🐛"),
    "feat": (":sparkles:", "✨"),
    "docs": (":memo:", "📝"),
    "test": (":white_check_mark:", "✅"),
    "ci": (":construction_worker:", "👷"),
}
_TYPES = (
    "feat|feature|fix|bugfix|hotfix|docs?|style|refactor|perf|tests?|build|ci|chore|revert|deps|"
    "release|security|types|wip"
)
_NAME = r"[A-Za-z0-9_.+/-]{1,40}"
_CONVENTIONAL = re.compile(rf"(?P<type>{_TYPES})(?:\((?P<area>[^()]{{1,40}})\))?!?: +(?=\S)", re.I)
_BRACKETS = re.compile(rf"\[(?P<area>{_NAME})\]:? +(?=\S)")
_AREA = re.compile(rf"(?P<area>{_NAME}(?:, ?{_NAME})*): +(?=\S)")
_ISSUE = re.compile(
    r"(?P<before>(?:(?:fix(?:e[sd])?|close[sd]?|resolve[sd]?|refs?|issue) )?(?:#|gh-))\d+"
    r"(?P<after>: | -- | - | )",
    re.I,
)
_TICKET = re.compile(r"(?P<open>\[?)(?P<project>[A-Z][A-Z0-9]{1,9})-\d+(?P<after>\]?(?:: | - | ))")
_EMOJI_LEAD = re.compile(
    "(?:(?P<code>:[a-z0-9_+-]{2,40}:)|(?P<char>[\u2600-\u27bf\u2b00-\u2bff\U0001f300-\U0001faff]))"
    "[\ufe0f\u200d]* *"
)
_NOT_WRITTEN = re.compile(r"(?:Merge|Revert|Bump|Release|Initial commit|v?\d+\.\d+)\b")
_NUMBER_AFTER = re.compile(r" \(#\d+\)$")
_FEATURE = re.compile(r"(?:add|implement|support|introduce|allow|enable)\b", re.I)
_FEATURE_LABEL = re.compile(r"enhancement|feature", re.I)
_FORMS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("conventional", _CONVENTIONAL),
    ("ticket", _TICKET),
    ("brackets", _BRACKETS),
    ("issue", _ISSUE),
    ("area", _AREA),
)


@dataclass(frozen=True)
class Style:
    """Represents the style of a repository's commit subjects.

    `areas` are the scopes or areas, most frequent first. `words` holds the other parts of the form:
    the types of conventional commits, the text before and after an issue number, or the parts of a
    ticket number. `emoji` is "code" for `:bug:`, "char" for the character itself, "" for none.
    `first` is the case of the first letter, "" if it varies. `longest` is the maximum length in
    characters.
    """

    kind: Kind = "plain"
    areas: tuple[str, ...] = ()
    with_area: bool = False
    words: tuple[str, ...] = ()
    emoji: Literal["", "code", "char"] = ""
    first: Literal["", "lower", "upper"] = ""
    full_stop: bool = False
    longest: int = USUAL
    is_known: bool = False


@dataclass(frozen=True)
class CommitSubject:
    """Represents the content of a commit, from which its subject is written.

    `paths` are the changed files, `issue` is the issue's number, and `said` is text that may name a
    ticket, such as the issue's title.
    """

    words: str
    paths: tuple[str, ...] = ()
    issue: int | None = None
    labels: tuple[str, ...] = ()
    said: str = ""


def read_style(subjects: Sequence[str]) -> Style:
    """Return the style that most of the subjects have in common."""
    seen = [_NUMBER_AFTER.sub("", s.strip()) for s in subjects if not _NOT_WRITTEN.match(s)]
    if len(seen) < FEWEST:
        return Style()
    leads = [_EMOJI_LEAD.match(subject) for subject in seen]
    forms = Counter("code" if lead["code"] else "char" for lead in leads if lead)
    emoji: Literal["", "code", "char"] = ""
    if 2 * forms.total() >= len(seen):
        emoji = "code" if forms["code"] >= forms["char"] else "char"
    bare = [_EMOJI_LEAD.sub("", subject, count=1) for subject in seen]
    kind, found = _form_of(bare)
    areas = Counter(each["area"] for each in found if "area" in each.re.groupindex and each["area"])
    rest = [each.string[each.end() :] for each in found] if found else bare
    lengths = sorted(len(subject) for subject in seen)
    return Style(
        kind=kind,
        areas=tuple(area for area, _ in areas.most_common() if re.fullmatch(_NAME, area)),
        with_area=2 * areas.total() >= len(found) > 0,
        words=_words_of(kind, found),
        emoji=emoji,
        first=_beginning(rest),
        full_stop=sum(subject.endswith(".") for subject in seen) > 0.6 * len(seen),
        longest=min(LONGEST, max(USUAL, lengths[len(lengths) * 9 // 10])),
        is_known=True,
    )


def _form_of(subjects: Sequence[str]) -> tuple[Kind, list[re.Match[str]]]:
    for kind, pattern in _FORMS:
        found = [match for subject in subjects if (match := pattern.match(subject))]
        if 2 * len(found) >= len(subjects):
            return kind, found
    return "plain", []


def _words_of(kind: Kind, found: Iterable[re.Match[str]]) -> tuple[str, ...]:
    if kind == "conventional":
        counted = Counter(each["type"] for each in found)
        return tuple(word for word, _ in counted.most_common())
    if kind == "issue":
        around = Counter((each["before"], each["after"]) for each in found)
        chosen = [pair for pair, _ in around.most_common() if not pair[0].lower().startswith("ref")]
        return chosen[0] if chosen else ()
    if kind == "ticket":
        around3 = Counter((each["open"], each["project"], each["after"]) for each in found)
        return around3.most_common(1)[0][0]
    return ()


def _beginning(rest: Sequence[str]) -> Literal["", "lower", "upper"]:
    letters = [text[0] for text in rest if text[:1].isalpha()]
    upper = sum(letter.isupper() for letter in letters)
    if not letters or 0.3 * len(letters) < upper < 0.7 * len(letters):
        return ""
    return "upper" if 2 * upper > len(letters) else "lower"


def write_subject(style: Style, subject: CommitSubject, *, limit: int | None = None) -> str:
    """Return the subject in the given style, shortened to `limit` characters if there is a limit.

    A subject that already has this style is returned as it is.
    """
    text = " ".join(subject.words.split())
    if style.is_known and not _is_written(style, text):
        work = change_kind_of(subject)
        text = _EMOJI_LEAD.sub("", text, count=1)
        text = text if style.kind == "conventional" else _CONVENTIONAL.sub("", text, count=1)
        own = _CONVENTIONAL.match(text)
        text = own[0] + _begun(style, text[own.end() :]) if own else _begun(style, text)
        if style.full_stop and text[-1:] not in {".", "!", "?"}:
            text += "."
        emoji = _EMOJI[work][style.emoji == "char"] + " " if style.emoji else ""
        text = emoji + ("" if own else _prefix(style, subject, work)) + text
    return text if limit is None else _cut(text, limit)


def _is_written(style: Style, text: str) -> bool:
    lead = _EMOJI_LEAD.match(text)
    if style.emoji and not (lead and lead[style.emoji]):
        return False
    bare = _EMOJI_LEAD.sub("", text, count=1)
    pattern = dict(_FORMS).get(style.kind)
    return bool(pattern.match(bare)) if pattern else bool(style.emoji)


def change_kind_of(subject: CommitSubject) -> Work:
    """Return the type of the change, judged by its files, the issue's labels and the
    description.
    """
    kinds = {_sort_of(path) for path in subject.paths}
    if len(kinds) == 1 and (only := kinds.pop()) is not None:
        return only
    asked = any(_FEATURE_LABEL.search(label) for label in subject.labels)
    return "feat" if asked or _FEATURE.match(subject.words) else "fix"


def _sort_of(path: str) -> Work | None:
    at = PurePosixPath(path.lower())
    if at.parts[:2] in {(".github", "workflows"), (".gitlab", "ci")}:
        return "ci"
    if is_test_path(path):
        return "test"
    is_prose = at.suffix in {".md", ".rst", ".adoc"} or {"docs", "doc"} & set(at.parts[:-1])
    return "docs" if is_prose else None


def is_test_path(path: str) -> bool:
    """Return True if the path is that of a test, by its folders and its name."""
    at = PurePosixPath(path.lower())
    within = {"test", "tests", "spec", "specs", "__tests__", "testdata"} & set(at.parts[:-1])
    return bool(within) or bool(re.search(r"(?:^|[._-])(?:test|tests|spec)(?:[._-]|$)", at.name))


def _prefix(style: Style, subject: CommitSubject, work: Work) -> str:
    match style.kind:
        case "conventional":
            known = {word.lower(): word for word in reversed(style.words)}
            names = [known[word] for word in _WORDS_FOR[work] if word in known]
            name = names[0] if names else _WORDS_FOR[work][0]
            area = _area(style, subject) if style.with_area else ""
            return f"{name}({area}): " if area else f"{name}: "
        case "brackets":
            area = _area(style, subject) or _folder(style, subject)
            return f"[{area}] " if area else ""
        case "area":
            area = _area(style, subject) or _folder(style, subject)
            return f"{area}: " if area else ""
        case "issue" if style.words and subject.issue is not None:
            return f"{style.words[0]}{subject.issue}{style.words[1]}"
        case "ticket":
            opened, project, after = style.words
            found = re.search(rf"\b{project}-\d+\b", f"{subject.words}\n{subject.said}")
            named = found is not None and found[0] in subject.words
            return f"{opened}{found[0]}{after}" if found and not named else ""
    return ""


def _parts(path: str) -> list[str]:
    """Return the names of the path's folders, and the file's name without its suffix."""
    at = PurePosixPath(path.lower())
    return [*at.parts[:-1], at.stem]


def _code(subject: CommitSubject) -> list[str]:
    """Return the changed files that are not tests, or all files if only tests changed."""
    return [p for p in subject.paths if not is_test_path(p)] or list(subject.paths)


def _area(style: Style, subject: CommitSubject) -> str:
    """Return the most specific known area that contains all files, else ""."""
    files = [f"/{'/'.join(_parts(path))}/" for path in _code(subject)]
    fits = [a for a in style.areas if files and all(f"/{a.lower()}/" in f for f in files)]
    return max(fits, key=lambda area: area.count("/"), default="")


def _folder(style: Style, subject: CommitSubject) -> str:
    """Return the folder that all files share, in the notation of the known areas.

    Used if no known area fits. Returns "" if the files share no folder or the style has no areas.
    """
    files = [PurePosixPath(path) for path in _code(subject)]
    if not files or not style.areas:
        return ""
    common = list(files[0].parts[:-1])
    for file in files[1:]:
        same = [a == b for a, b in zip(common, file.parts[:-1], strict=False)]
        common = common[: same.index(False) if False in same else len(same)]
    if not common:
        name = files[0].stem if len(files) == 1 else ""
    else:
        name = "/".join(common) if any("/" in area for area in style.areas) else common[-1]
    return name if re.fullmatch(_NAME, name) else ""


def _begun(style: Style, text: str) -> str:
    word = text.split(" ", 1)[0]
    if style.first == "lower" and re.fullmatch(r"[A-Z][a-z]+[,:]?", word):
        return text[:1].lower() + text[1:]
    if style.first == "upper" and re.fullmatch(r"[a-z]+[,:]?", word):
        return text[:1].upper() + text[1:]
    return text


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    kept = text[: limit - 1]
    head = kept.rpartition(" ")[0] if text[limit - 1] != " " else kept
    return (head if len(head) > limit // 2 else kept).rstrip(" ,;:-") + "…"
