"""Titles of changes: which line can be one, and how the repository writes its commit subjects.

A title begins with a verb of change ("Add", "Fixes", "Handled", or "fix: ") and names what was
changed. Lines about the work itself ("All tests passed", "I'm ready to submit", "Let me verify")
are rejected. Rejecting a good title costs little: the issue's title is used instead.

The agent sees the repository's newest subjects and writes the title in their style. Only the types
of Conventional Commits are added to a title that lacks them, because checks often require them:
https://www.conventionalcommits.org
"""

import re
from collections.abc import Collection, Iterable, Sequence

_PREFIX = re.compile(
    r"(?:\w{1,20}\([^()]{1,40}\)!?|[\w./-]{1,40}!?):\s+|\[[^\]]{1,40}\]:?\s+|:\w{2,40}:\s+"
)
"""Prefixes of a subject: `fix(parser): `, `docs: `, `[api] `, `:bug: `."""

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

_TEMPORARY_WORK = re.compile(
    r"\b(?:(?:test_|debug_)?repro(?:duc\w*)?(?:_\w+)?(?:\.\w+|\s+(?:scripts?|files?|tests?|cases?|code))"
    r"|(?:scripts?|files?)\s+(?:to|that|for|which)\s+(?:reproduc|verif|test|check|debug)\w*"
    r"|(?:debug(?:ging)?\s+)?print\s+statements?|root\s+causes?"
    r"|(?:temporary|temp|scratch|debug(?:ging)?)\s+(?:scripts?|changes?|edits?|prints?|output|code))\b"
    r"|\s/tmp\b",
    re.I,
)
"""What exists only during the work: scripts that reproduce the issue, output for debugging."""

_PREPARATION = re.compile(
    r"(?:install|set ?up|create|activate)\s+(?:(?:the|all|a|any|new|missing|required|virtual"
    r"|development|project['’]s)\s+)*(?:dependenc\w+|requirements|packages|environment|venv)"
    r"|(?:use|invoke|call)\s+(?:the\s+)?(?:git|sed|grep|find|cat|python|pytest|bash|editor)\s.*"
    r"|(?:make|apply)\s+(?:the|this|that|these|those|my)\s+(?:changes?|edits?|fix(?:es)?)\b.*"
    r"|(?:open|save|read|find|locate|edit|modify)\s+(?:the|this|that)\s+(?:relevant\s+|source\s+)?(?:file|code)\b.*"
    r"|find\s+(?:where|out|how|why)\b.*|(?:kill|stop|start|restart)\s+the\s+server"
    r"|(?:show|print|list|get|display)\s+the\s+(?:current\s+)?(?:diff|output|state|status|files?"
    r"|contents?|results?)(?:\s+(?:of|in)\s+(?:the|this)\s+(?:command|directory|folder|repository"
    r"|file|tests?))?",
    re.I,
)
"""A step that prepares the work or looks at something, as a whole line."""

_CALL = re.compile(r"\w+[(._]\S")
"""Code rather than a verb: `add()`, `print.color`."""

_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_TECHNICAL = re.compile(
    r"\w\(|\w_\w|[a-z0-9][A-Z]|\w\.\w|\w/\w|(?:^|\s)--?\w|\b[A-Z][a-z]+[A-Z]|`|\b[A-Z]{2,}\b"
)
"""Names from code: `alpha()`, `max_size`, `Money.split`, `--flag`, `HTTP`."""


def is_descriptive_title(line: str, subject_texts: Iterable[str] = ()) -> bool:
    """Return True if a line can be the title of a change.

    `subject_texts` holds texts that name what the change is about, such as the issue's title.
    """
    line = line.strip()
    text = _PREFIX.sub("", line, count=1)
    if is_about_process(text) or _is_temporary_step(text):
        return False
    adverb = _ADVERB.match(text)
    if adverb and _is_verb_of_change(adverb[0].strip().lower()):
        adverb = None  # "Apply", "Multiply"
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


def is_about_process(line: str) -> bool:
    """Return True if a line is about the work (its author, progress, steps), not the change."""
    return bool(
        _FIRST_PERSON.search(line)
        or _REMARK_OPENING.match(line)
        or _STATE_OF_WORK.match(line)
        or _PAST_WORK.match(line)
        or _STEP.fullmatch(line)
    )


def _is_temporary_step(line: str) -> bool:
    """Return True if a line names a step whose result is not part of the change."""
    return bool(_TEMPORARY_WORK.search(line) or _PREPARATION.fullmatch(line.rstrip(" .!")))


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
"""Minimum number of subjects that show whether a repository uses Conventional Commits."""

MAX_SUBJECT_LENGTH = 72
"""Maximum length of a commit's subject, in characters."""

_CONVENTIONAL = re.compile(
    r"(?:feat|feature|fix|bugfix|hotfix|docs?|style|refactor|perf|tests?|build|ci|chore|revert|deps"
    r"|release|security|types|wip)(?:\([^()]{1,40}\))?!?: +(?=\S)",
    re.I,
)
_GENERATED_SUBJECT = re.compile(r"(?:Merge|Revert|Bump|Release|Initial commit|v?\d+\.\d+)\b")
_FEATURE = re.compile(r"(?:add|implement|support|introduce|allow|enable)\b", re.I)


def has_conventional_commits(subjects: Sequence[str]) -> bool:
    """Return True if most of the subjects that people wrote are Conventional Commits."""
    written = [subject for subject in subjects if not _GENERATED_SUBJECT.match(subject)]
    matching = [subject for subject in written if _CONVENTIONAL.match(subject.strip())]
    return len(written) >= MIN_SUBJECTS and 2 * len(matching) >= len(written)


def write_subject(subjects: Sequence[str], text: str, *, limit: int | None = None) -> str:
    """Return the text as the subject of a commit, on one line.

    It gets a type if the repository uses Conventional Commits and it has none, and is shortened to
    `limit` characters if there is a limit. `subjects` are those of the repository's newest commits.
    """
    text = " ".join(text.split())
    if has_conventional_commits(subjects) and not _CONVENTIONAL.match(text):
        word = text.split(" ", 1)[0]
        is_name = re.fullmatch(r"[A-Z][a-z]+[,:]?", word) is None
        first = text[:1] if is_name else text[:1].lower()
        text = f"{'feat' if _FEATURE.match(text) else 'fix'}: {first}{text[1:]}"
    return text if limit is None else _truncate(text, limit)


def _truncate(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    shortened = text[: limit - 1]
    head = shortened.rpartition(" ")[0] if text[limit - 1] != " " else shortened
    return (head if len(head) > limit // 2 else shortened).rstrip(" ,;:-") + "…"
