"""Titles of changes: which line can be one, and how the repository writes its commit subjects.

A title begins with a verb of change ("Add", "Fixes", "Handled", or "fix: ") and names what was
changed. Lines about the work itself ("All tests passed", "I'm ready to submit", "Let me verify")
are rejected. Rejecting a good title costs little: the issue's title is used instead.

The style of subjects is read from the repository's newest ones by fixed rules. If they show no
consistent style, the subject is left as it is.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

_PREFIX = re.compile(r"(?:\w{1,20}\([^()]{1,40}\)!?|[\w./-]{1,40}!?):\s+|\[[^\]]{1,40}\]:?\s+")
"""Prefixes of a subject: `fix(parser): `, `docs: `, `[api] `."""

_TYPE = re.compile(
    r"(?:build|chore|ci|docs?|feat|fix|perf|refactor|style|tests?)\b[^:]{0,50}:", re.I
)
"""Types of https://www.conventionalcommits.org, which alone state that something was changed."""

_ADVERB = re.compile(
    r"(?:(?P<stops>no longer|don['’]t|do not|never)|\w{3,20}ly|also|always)\s+", re.I
)
"""Words that may precede the verb."""

_CHANGE_VERBS = """
    abort accept adapt add address adjust adopt align allow amend anchor annotate append apply
    archive arrange ask assert assign assume attach authenticate authorize avoid backfill
    backport balance batch begin benchmark bind block bootstrap borrow bound break bring bubble
    buffer build bump bundle bypass cache calculate call cancel canonicalize cap capitalize
    carry cast catch center chain change choose chunk cite clamp clarify clear clone close
    coerce collapse collect color colour combine comment commit compare compile compress compute
    configure connect consider consolidate construct contain convert copy correct correlate
    count cover crash create credit crop cut deal debounce declare decode decompress decouple
    decrease decrement decrypt dedent deduplicate deepen default defer define delay delete
    demote deny deploy deprecate derive describe deserialize detach detect determine disable
    disallow discard disconnect dismiss dispatch display distinguish divide do document double
    downgrade drain draw drive drop duplicate elide eliminate embed emit emulate enable
    encapsulate encode encourage encrypt end enforce enhance enlarge ensure enumerate error
    escape establish estimate evaluate evict exclude execute exempt exit expand expect expire
    explain export expose extend extract fail fake fall fetch filter finalize find fix flag
    flatten flush focus fold follow forbid force forgive fork format forward free freeze fuzz
    gate gather generate get give grant group guard halt handle harden harmonize hash hide
    highlight hint hoist hold honor honour hook identify ignore implement import improve include
    increase increment indent index indicate infer inherit initialise initialize initiate inject
    inline insert install instantiate instrument integrate intercept interpolate interpret
    interrupt introduce invalidate invert iron isolate issue iterate join keep kill lead learn
    leave let lift limit link lint list load localize lock log loosen lower lowercase maintain
    make manage map mark mask match measure memoize mend mention merge migrate minify minimize
    mirror mock modernize modify monitor mount move multiplex multiply mutate mute name narrow
    negate negotiate nest normalise normalize note notify nudge null obey obtain offer offset
    omit open opt optimise optimize order override own pack pad page paginate parallelize parse
    partition pass paste patch pause permit persist pick pin ping pipe place plug pluralize
    point poll populate port postpone postprocess precompute prefer prefetch preload prepare
    prepend preprocess preserve prevent print probe process produce profile project promote
    prompt propagate propose protect prove provide prune publish pull purge push put qualify
    query queue quote raise randomize rank reach react rearrange reassign rebuild recalculate
    receive recognise recognize recompute reconcile reconnect record recover recreate recurse
    redirect redo reduce refactor refer refine reflect refresh regenerate register reinstate
    reintroduce reject relax release reload relocate rely remember remove rename render reopen
    reorder reorganize repair reparse repeat rephrase replace replay report request require
    reraise rescale rescue resend reserve reset resize resolve respect respond restart restore
    restrict restructure restyle resume retain rethrow retire retrieve retry return reuse reveal
    revert revive rewind rewire reword rework rewrite roll rotate round route safeguard salt
    sample sanitise sanitize satisfy save say scale scan schedule scope scroll scrub secure seed
    seek segment select send separate serialise serialize set shadow share shield shift ship
    shorten show shrink shuffle shut sign silence simplify skip sleep slice slow smooth snapshot
    solidify sort spawn specify speed spell split spread stabilize stack stage standardise
    standardize start stash stick stop store stream stretch strip style subclass subscribe
    substitute subtract suffix suggest sum summarize supply support suppress surface suspend
    swallow swap switch sync synchronize tag tailor take teach tear tell terminate theme
    throttle throw tidy tighten time toggle tokenize tolerate touch trace track transform
    translate transpose traverse treat trigger trim truncate turn tweak type unbind unblock
    uncomment uncover underline understand undo unescape unfold unify uninstall unlock unmount
    unpack unpin unquote unset unsubscribe untangle unwrap update upgrade upload uppercase use
    validate vary vectorize vendor verbalize version visit void vote wait wake warn watch weaken
    weigh whitelist widen wind wipe wire wrap write yield zero
"""
_VERBS = frozenset(_CHANGE_VERBS.split())
"""Base forms of the verbs with which commit messages describe a change."""

_STEP_VERBS = """
    check clean complete examine finish inspect look read reproduce review run see submit test
    try verify view
"""
_STEPS = frozenset(_STEP_VERBS.split())
"""Verbs that describe a change or a step of the work.

They count as a change only if the rest of the line names something known.
"""

_IRREGULAR = {
    "broke": "break", "broken": "break", "brought": "bring", "built": "build", "caught": "catch",
    "chose": "pick", "dealt": "deal", "did": "do", "done": "do", "does": "do", "fell": "fall",
    "found": "find", "gave": "give", "got": "get", "held": "hold", "hid": "hide", "kept": "keep",
    "left": "leave", "made": "make", "overrode": "override", "rebuilt": "rebuild",
    "rewrote": "rewrite", "sent": "send", "shown": "show", "took": "take", "taught": "teach",
    "threw": "throw", "wrote": "write",
}  # fmt: skip

_AUXILIARIES = frozenset(
    {"is", "are", "was", "were", "has", "have", "had", "does", "did", "can", "will"}
)

_GENERIC = """
    a about above again all also always an and any are as at back be been being below bug bugs
    but by can case cases change changed changes code complete completed completely correct
    corrected correctly current different done edit edits error errors every everything existing
    expected fail failed failing fails feature features few file files final fine finished first
    fix fixed fixes for from full fully further given good had has have here how if implement
    implementation implemented in instead into is issue issues it its just last like make many
    mentioned minor more necessary needed new no not now of off ok okay on one only or other our
    out over own part pass passed passes passing patch perfect please pr problem problems
    project properly provided pull quick ready relevant repo repository request requested
    requests required resolve resolved result results right same see should small so solution
    solve solved some statement step submission submit success successful successfully suite
    sure task tasks test tested tests than that the their them then there these they thing
    things this those time to together too update updated updates use various verified verify
    very was way were what when where which will with without work working works would yet your
"""
_GENERIC_WORDS = frozenset(_GENERIC.split())
"""Words that identify nothing: a line that has only these does not say what was changed."""

_FIRST_PERSON = re.compile(
    r"(?:^|[.,;!?]\s+|\b(?:and|so|now|but|that|because|as|what)\s+)(?:I|[Ww]e)\b(?![./])"
    r"|\b[Ii]['’](?:m|ve|ll|d)\b|\b[Ww]e['’](?:re|ve|ll|d)\b"
    r"|\bI (?:am|have|will|was|had|need|should|can|could|would|must|did|do|think|made|ran)\b"
    r"|\b[Ll]et(?:['’]s| me| us)\b|\b(?:[Mm]y|[Mm]ine|[Mm]yself)\b"
)
"""First person: the author talks about the work."""

_REMARK_OPENING = re.compile(
    r"(?:now|next|first|firstly|second|then|finally|lastly|wait|ok|okay|great|good|perfect|excellent"
    r"|nice|awesome|yes|no(?! longer)|so|well|actually|however|hmm+|alright|right|sure|done|ready"
    r"|here|summary|unfortunately|looks?|looking|seems?|going|based|given|since|still|success|confident)\b"
    r"|\w+[.!](?:\s|$)",
    re.I,
)
"""First words of a remark about the work."""

_WORK = (
    r"(?:(?:all|the|these|those|this|that|my|our|both|every|each|some|most|any|no|\d+|new|existing"
    r"|relevant|related|other|final|unit|full|whole|entire|regression|requested|necessary|required"
    r"|proposed|reproduction|repro)\s+)*"
    r"(?:it|this|that|all|everything|nothing|tests?(?:\s+(?:cases?|suite|files?|run|results?))?"
    r"|suite|checks?|diff|patch|changes?|fix(?:es)?|solution|implementation|work|task|issue|bug"
    r"|problem|scripts?|output|results?|code|ci|linter|linting|build|modifications?|edits?)"
)
_STATE_OF_WORK = re.compile(
    rf"{_WORK}\s+(?:(?:now|still|also|already|all|both|just|should|will|can|does|do|did|not|"
    r"successfully|finally|correctly)\s+)*"
    r"(?:is|are|was|were|be|has|have|had|look(?:s|ed)?|work(?:s|ed|ing)?|pass(?:es|ed|ing)?"
    r"|fail(?:s|ed|ing)?|seems?|appears?|succeed(?:s|ed)?|confirm(?:s|ed)?|show(?:s|ed)?"
    r"|ran|runs?|complete(?:d|s)?|finished|done|ready|ok|okay|fine|good|correct|resolved|fixed"
    r"|implemented|applied|verified|submitted|clean|green|exists?)\b",
    re.I,
)
"""A statement about the state of the work, its tests or its result."""

_PAST_WORK = re.compile(
    r"(?:(?:successfully|manually|also|just)\s+)?(?:verif(?:ied|ying)|confirm(?:ed|ing)"
    r"|test(?:ed|ing)|check(?:ed|ing)|double[- ]check(?:ed|ing)?|ran|running|review(?:ed|ing)"
    r"|reproduc(?:ed|ing)|investigat(?:ed|ing)|analy[sz](?:ed|ing)|inspect(?:ed|ing)"
    r"|look(?:ed|ing)|submit(?:ted|ting)?|finish(?:ed|ing)?|complet(?:ed|ing)|explor(?:ed|ing))\b",
    re.I,
)
_STEP = re.compile(
    r"(?:run|re-?run|verify|check|test|review|confirm|submit|finish|complete|finali[sz]e|inspect"
    r"|clean up|remove|delete|reproduce|see|view|do|proceed|continue|wrap)\b"
    rf"(?:\s+(?:that|if|whether|with|up))?\s+(?:(?:\w+\s+)?{_WORK}|(?:the\s+)?(?:temporary|temp|scratch)\s+\w+)"
    r"(?:\s+(?:again|once more|one last time|now|first|works?|passe?s?|is|are|was|were|before"
    r"|to make sure|to be sure|submission|submitting|properly|correctly)\b.*)?\W*",
    re.I,
)
"""A step of the work: something that was run or inspected, not changed."""

_CALL = re.compile(r"\w+[(._]\S")
"""Code rather than a verb: `add()`, `print.color`."""

_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_TECHNICAL = re.compile(
    r"\w\(|\w_\w|[a-z0-9][A-Z]|\w\.\w|\w/\w|(?:^|\s)--?\w|\b[A-Z][a-z]+[A-Z]|`|\b[A-Z]{2,}\b"
)
"""Names from code: `alpha()`, `max_size`, `Money.split`, `--flag`, `HTTP`."""


def says_what_changed(line: str, subject_texts: Iterable[str] = ()) -> bool:
    """Return True if a line can be the title of a change.

    `subject_texts` holds texts that name what the change is about, such as the issue's title.
    """
    line = line.strip()
    text = _PREFIX.sub("", line, count=1)
    if is_about_the_work(text):
        return False
    adverb = _ADVERB.match(text)
    text = text[adverb.end() :] if adverb else text
    words = [word.lower() for word in _WORD.findall(text)]
    if not words or _CALL.match(text):
        return False
    specific_words = {word for word in words[1:] if word not in _GENERIC_WORDS}
    if _TYPE.match(line):
        return bool(specific_words)
    if not specific_words and not _TECHNICAL.search(text):
        return False
    if words[0] in _STEPS:
        return not _stems(specific_words).isdisjoint(_stems(_names(subject_texts)))
    if words[1:2] and words[1] in _AUXILIARIES:
        return False  # "Set does not override it": here the first word is a noun.
    return _is_verb_of_change(words[0]) or bool(adverb and adverb["stops"])


def is_about_the_work(line: str) -> bool:
    """Return True if a line is about the work (its author, progress, steps), not the change."""
    return bool(
        _FIRST_PERSON.search(line)
        or _REMARK_OPENING.match(line)
        or _STATE_OF_WORK.match(line)
        or _PAST_WORK.match(line)
        or _STEP.fullmatch(line)
    )


def _is_verb_of_change(word: str) -> bool:
    """Return True if a word is a form of one of the verbs of change."""
    forms = {word, _IRREGULAR.get(word, word)}
    for ending in ("s", "es", "d", "ed"):
        if word.endswith(ending) and len(word) > len(ending) + 1:
            stem = word.removesuffix(ending)
            forms |= {stem, f"{stem}e"}
            if stem.endswith("i"):
                forms.add(f"{stem[:-1]}y")
            if stem[-1:] == stem[-2:-1]:
                forms.add(stem[:-1])
    return not forms.isdisjoint(_VERBS)


def _names(texts: Iterable[str]) -> list[str]:
    words = (word.lower() for text in texts for word in re.findall(r"[^\W\d_]{3,}", text[:2_000]))
    return [word for word in words if word not in _GENERIC_WORDS]


def _stems(words: Collection[str]) -> set[str]:
    """Return the words without a plural ending."""
    return {word.removesuffix("s") for word in words if len(word) > 2}


MIN_SUBJECTS = 5
"""Minimum number of subjects from which a style is derived."""

DEFAULT_SUBJECT_LENGTH = 72
MAX_SUBJECT_LENGTH = 100
"""Maximum lengths of a subject in characters.

The maximum applies to a repository in which longer subjects than the default are common.
"""

Kind = Literal["plain", "conventional", "brackets", "area", "issue", "ticket"]
Work = Literal["fix", "feat", "docs", "test", "ci"]

_TYPES_BY_KIND: dict[Work, tuple[str, ...]] = {
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
_EMOJI_PREFIX = re.compile(
    "(?:(?P<code>:[a-z0-9_+-]{2,40}:)|(?P<char>[\u2600-\u27bf\u2b00-\u2bff\U0001f300-\U0001faff]))"
    "[\ufe0f\u200d]* *"
)
_GENERATED_SUBJECT = re.compile(r"(?:Merge|Revert|Bump|Release|Initial commit|v?\d+\.\d+)\b")
_PULL_REQUEST_SUFFIX = re.compile(r" \(#\d+\)$")
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
    `first_letter` is the case of the first letter, "" if it varies. `max_length` is the maximum
    length in characters.
    """

    kind: Kind = "plain"
    areas: tuple[str, ...] = ()
    with_area: bool = False
    words: tuple[str, ...] = ()
    emoji: Literal["", "code", "char"] = ""
    first_letter: Literal["", "lower", "upper"] = ""
    full_stop: bool = False
    max_length: int = DEFAULT_SUBJECT_LENGTH
    is_known: bool = False


@dataclass(frozen=True)
class CommitSubject:
    """Represents the content of a commit, from which its subject is written.

    `paths` are the changed files, `issue` is the issue's number, and `ticket_text` is text that may
    name a ticket, such as the issue's title.
    """

    text: str
    paths: tuple[str, ...] = ()
    issue: int | None = None
    labels: tuple[str, ...] = ()
    ticket_text: str = ""


def read_style(subjects: Sequence[str]) -> Style:
    """Return the style that most of the subjects have in common."""
    cleaned_subjects = [
        _PULL_REQUEST_SUFFIX.sub("", subject.strip())
        for subject in subjects
        if not _GENERATED_SUBJECT.match(subject)
    ]
    if len(cleaned_subjects) < MIN_SUBJECTS:
        return Style()
    emoji_matches = [_EMOJI_PREFIX.match(subject) for subject in cleaned_subjects]
    emoji_forms = Counter(
        "code" if emoji_match["code"] else "char" for emoji_match in emoji_matches if emoji_match
    )
    emoji: Literal["", "code", "char"] = ""
    if 2 * emoji_forms.total() >= len(cleaned_subjects):
        emoji = "code" if emoji_forms["code"] >= emoji_forms["char"] else "char"
    without_emoji = [_EMOJI_PREFIX.sub("", subject, count=1) for subject in cleaned_subjects]
    kind, matches = _detect_form(without_emoji)
    areas = Counter(
        match["area"] for match in matches if "area" in match.re.groupindex and match["area"]
    )
    texts = [match.string[match.end() :] for match in matches] if matches else without_emoji
    lengths = sorted(len(subject) for subject in cleaned_subjects)
    return Style(
        kind=kind,
        areas=tuple(area for area, _ in areas.most_common() if re.fullmatch(_NAME, area)),
        with_area=2 * areas.total() >= len(matches) > 0,
        words=_read_form_words(kind, matches),
        emoji=emoji,
        first_letter=_detect_first_case(texts),
        full_stop=sum(subject.endswith(".") for subject in cleaned_subjects)
        > 0.6 * len(cleaned_subjects),
        max_length=min(
            MAX_SUBJECT_LENGTH, max(DEFAULT_SUBJECT_LENGTH, lengths[len(lengths) * 9 // 10])
        ),
        is_known=True,
    )


def _detect_form(subjects: Sequence[str]) -> tuple[Kind, list[re.Match[str]]]:
    for kind, pattern in _FORMS:
        matches = [match for subject in subjects if (match := pattern.match(subject))]
        if 2 * len(matches) >= len(subjects):
            return kind, matches
    return "plain", []


def _read_form_words(kind: Kind, matches: Iterable[re.Match[str]]) -> tuple[str, ...]:
    if kind == "conventional":
        types = Counter(match["type"] for match in matches)
        return tuple(word for word, _ in types.most_common())
    if kind == "issue":
        issue_forms = Counter((match["before"], match["after"]) for match in matches)
        issue_words = [
            pair for pair, _ in issue_forms.most_common() if not pair[0].lower().startswith("ref")
        ]
        return issue_words[0] if issue_words else ()
    if kind == "ticket":
        ticket_forms = Counter(
            (match["open"], match["project"], match["after"]) for match in matches
        )
        return ticket_forms.most_common(1)[0][0]
    return ()


def _detect_first_case(texts: Sequence[str]) -> Literal["", "lower", "upper"]:
    letters = [text[0] for text in texts if text[:1].isalpha()]
    upper = sum(letter.isupper() for letter in letters)
    if not letters or 0.3 * len(letters) < upper < 0.7 * len(letters):
        return ""
    return "upper" if 2 * upper > len(letters) else "lower"


def write_subject(style: Style, subject: CommitSubject, *, limit: int | None = None) -> str:
    """Return the subject in the given style, shortened to `limit` characters if there is a limit.

    A subject that already has this style is returned as it is.
    """
    text = " ".join(subject.text.split())
    if style.is_known and not _has_style(style, text):
        work = change_kind_of(subject)
        text = _EMOJI_PREFIX.sub("", text, count=1)
        text = text if style.kind == "conventional" else _CONVENTIONAL.sub("", text, count=1)
        own_type = _CONVENTIONAL.match(text)
        text = (
            own_type[0] + _apply_first_case(style, text[own_type.end() :])
            if own_type
            else _apply_first_case(style, text)
        )
        if style.full_stop and text[-1:] not in {".", "!", "?"}:
            text += "."
        emoji = _EMOJI[work][style.emoji == "char"] + " " if style.emoji else ""
        text = emoji + ("" if own_type else _prefix(style, subject, work)) + text
    return text if limit is None else _truncate(text, limit)


def _has_style(style: Style, text: str) -> bool:
    emoji_match = _EMOJI_PREFIX.match(text)
    if style.emoji and not (emoji_match and emoji_match[style.emoji]):
        return False
    without_emoji = _EMOJI_PREFIX.sub("", text, count=1)
    pattern = dict(_FORMS).get(style.kind)
    return bool(pattern.match(without_emoji)) if pattern else bool(style.emoji)


def change_kind_of(subject: CommitSubject) -> Work:
    """Return the type of the change, judged by its files, the issue's labels and the
    description.
    """
    kinds = {_kind_of_path(path) for path in subject.paths}
    if len(kinds) == 1 and (only_kind := kinds.pop()) is not None:
        return only_kind
    is_feature = any(_FEATURE_LABEL.search(label) for label in subject.labels)
    return "feat" if is_feature or _FEATURE.match(subject.text) else "fix"


def _kind_of_path(path: str) -> Work | None:
    pure_path = PurePosixPath(path.lower())
    if pure_path.parts[:2] in {(".github", "workflows"), (".gitlab", "ci")}:
        return "ci"
    if is_test_path(path):
        return "test"
    is_prose = pure_path.suffix in {".md", ".rst", ".adoc"} or {"docs", "doc"} & set(
        pure_path.parts[:-1]
    )
    return "docs" if is_prose else None


def is_test_path(path: str) -> bool:
    """Return True if the path is that of a test, by its folders and its name."""
    pure_path = PurePosixPath(path.lower())
    test_folders = {"test", "tests", "spec", "specs", "__tests__", "testdata"} & set(
        pure_path.parts[:-1]
    )
    return bool(test_folders) or bool(
        re.search(r"(?:^|[._-])(?:test|tests|spec)(?:[._-]|$)", pure_path.name)
    )


def _prefix(style: Style, subject: CommitSubject, work: Work) -> str:
    match style.kind:
        case "conventional":
            types_by_name = {word.lower(): word for word in reversed(style.words)}
            known_types = [
                types_by_name[word] for word in _TYPES_BY_KIND[work] if word in types_by_name
            ]
            type_name = known_types[0] if known_types else _TYPES_BY_KIND[work][0]
            area = _area(style, subject) if style.with_area else ""
            return f"{type_name}({area}): " if area else f"{type_name}: "
        case "brackets":
            area = _area(style, subject) or _folder(style, subject)
            return f"[{area}] " if area else ""
        case "area":
            area = _area(style, subject) or _folder(style, subject)
            return f"{area}: " if area else ""
        case "issue" if style.words and subject.issue is not None:
            return f"{style.words[0]}{subject.issue}{style.words[1]}"
        case "ticket":
            opening, project, closing = style.words
            ticket = re.search(rf"\b{project}-\d+\b", f"{subject.text}\n{subject.ticket_text}")
            is_named = ticket is not None and ticket[0] in subject.text
            return f"{opening}{ticket[0]}{closing}" if ticket and not is_named else ""
    return ""


def _path_names(path: str) -> list[str]:
    """Return the names of the path's folders, and the file's name without its suffix."""
    pure_path = PurePosixPath(path.lower())
    return [*pure_path.parts[:-1], pure_path.stem]


def _code_paths(subject: CommitSubject) -> list[str]:
    """Return the changed files that are not tests, or all files if only tests changed."""
    return [path for path in subject.paths if not is_test_path(path)] or list(subject.paths)


def _area(style: Style, subject: CommitSubject) -> str:
    """Return the most specific known area that contains all files, else ""."""
    files = [f"/{'/'.join(_path_names(path))}/" for path in _code_paths(subject)]
    containing = [
        a for a in style.areas if files and all(f"/{a.lower()}/" in file for file in files)
    ]
    return max(containing, key=lambda area: area.count("/"), default="")


def _folder(style: Style, subject: CommitSubject) -> str:
    """Return the folder that all files share, in the notation of the known areas.

    Used if no known area fits. Returns "" if the files share no folder or the style has no areas.
    """
    files = [PurePosixPath(path) for path in _code_paths(subject)]
    if not files or not style.areas:
        return ""
    common = list(files[0].parts[:-1])
    for file in files[1:]:
        equal_parts = [
            part == other_part for part, other_part in zip(common, file.parts[:-1], strict=False)
        ]
        common = common[: equal_parts.index(False) if False in equal_parts else len(equal_parts)]
    if not common:
        name = files[0].stem if len(files) == 1 else ""
    else:
        name = "/".join(common) if any("/" in area for area in style.areas) else common[-1]
    return name if re.fullmatch(_NAME, name) else ""


def _apply_first_case(style: Style, text: str) -> str:
    word = text.split(" ", 1)[0]
    if style.first_letter == "lower" and re.fullmatch(r"[A-Z][a-z]+[,:]?", word):
        return text[:1].lower() + text[1:]
    if style.first_letter == "upper" and re.fullmatch(r"[a-z]+[,:]?", word):
        return text[:1].upper() + text[1:]
    return text


def _truncate(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    shortened = text[: limit - 1]
    head = shortened.rpartition(" ")[0] if text[limit - 1] != " " else shortened
    return (head if len(head) > limit // 2 else shortened).rstrip(" ,;:-") + "…"
