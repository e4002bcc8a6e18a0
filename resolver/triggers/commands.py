"""What a mention asks for: new work, or something of a run that is there already.

Only a whole instruction is a command: `stop` stops, `stop using mocks` is work to be done.
docs/commands.md tells people the same rules.
"""

import re

from resolver.model import Command, Extension, Noun

MOST = Extension(iterations=10_000, budget=10_000.0, time=7 * 24 * 3600.0)
"""The most that one comment can ask for; the operator's ceiling is far below."""

_AMOUNTS = 8
"""Amounts that are read from one comment."""

_NAMES = {
    "stop": Command.STOP,
    "cancel": Command.STOP,
    "abort": Command.STOP,
    "pause": Command.PAUSE,
    "resume": Command.RESUME,
    "unpause": Command.RESUME,
    "continue": Command.CONTINUE,
    "proceed": Command.CONTINUE,
    "go on": Command.CONTINUE,
    "carry on": Command.CONTINUE,
    "keep going": Command.CONTINUE,
}
_NAME = re.compile(
    r"(?:please[ ,]{1,3})?(" + "|".join(n.replace(" ", "[ ]") for n in _NAMES) + r")(?![\w'’-])",
    re.I,
)
# what may stand between a command and its end without making it a sentence about something else
_FILLER = re.compile(
    r"(?:[ \t]{1,3}(?:please|now|it|this|that|here|working|work|again|"
    r"(?:the|this|that|your)[ ](?:run|work|job)))+(?![\w'’-])",
    re.I,
)
_END = re.compile(r"[ \t]{0,9}(?:$|[\n,.;:!?)*_\u2013\u2014]|-[ ])")
_WITH = re.compile(r"[ \t]{1,9}(?:(?:and|but|with)\b[ \t]{0,9}|(?=[-+$0-9]))", re.I)
_COURTESY = re.compile(r"(?:please|thanks|thank you|pls)[\s.!]*", re.I)

_NUMBER = r"(?P<number>[0-9]{1,3}(?:,[0-9]{3}){1,3}|[0-9]{1,30}(?:\.[0-9]{1,4})?|an?|one)"
_MORE = r"(?:[ ]{1,3}(?:more|further|extra|additional|another))?"
_AMOUNT = re.compile(
    r"(?P<plus>\+[ ]?|(?:by|another|plus)[ ]{1,3})?"
    rf"(?P<dollar>\$[ ]?)?{_NUMBER}(?P<more>{_MORE})"
    r"(?:[ ]{0,3}(?P<unit>iterations?|steps?|replies|turns?|dollars?|usd|\$"
    r"|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h)(?![\w'’-]))?"
    rf"(?P<after>{_MORE})",
    re.I,
)
_JOINT = re.compile(r"[ \t]{0,9}(?:[,;&]|\band\b|(?=\+))?[ \t]{0,9}(?:and[ ]{1,3})?", re.I)
_LEAD = re.compile(
    r"[ \t]{0,9}(?:[,:]?[ \t]{0,9}(?:with|for|and)\b[ \t]{1,9}|[,:]?[ \t]{0,9})", re.I
)
_BOUNDARY = re.compile(
    r"[ \t]{0,9}(?:$|[\n,.;:!?)*_\u2013\u2014]|-[ ]|(?:and|but|please|then)\b)", re.I
)
_EXTEND = re.compile(r"(?:please[ ,]{1,3})?extend\b(?:[ ](?:it|the run|this run))?", re.I)
_ASKED = re.compile(r"(?:/ask\b|question[ \t]{0,3}:)[ \t:]{0,9}(?=\S)", re.I)
# one sentence only: what follows a question is mostly a wish
_QUESTION = re.compile(
    r"(?:why|what|how|where|which|who|when|does|do|is|are|was|were|did)(?:['’]s|['’]re)?[ ]"
    r"(?:(?![.!?;](?:\s|$))[^\n]){1,2000}\?",
    re.I,
)
_WISH = re.compile(
    r"\b(?:you|we|please|pls|possible)\b|^(?:how|what)[ ]about\b|n['’]t\b.{0,20}\b(?:we|you)\b",
    re.I,
)
_JUNK = " \t\n,.;:!?)*_-\u2013\u2014"


class Instruction(Noun):
    """words: what is left for the agent to be told; "" when the command says it all."""

    command: Command = Command.FIX
    extension: Extension = Extension()
    words: str = ""


FIX = Instruction()
"""Work to do, without a word about it."""


def read_instruction(text: str) -> Instruction:
    """What the words after a mention ask for. Total: what is no command is work to do.

    stop, pause and resume count when nothing but a courtesy or a punctuation mark follows;
    continue also before `with`, `and`, `but` and before amounts like `+50 iterations` or `$2 more`.
    Amounts alone (`+$2`, `extend by 1 hour`) are a continue, too.
    """
    text = text.strip()
    question = _question(text)
    if question:
        return Instruction(command=Command.QUESTION, words=question)
    named = _NAME.match(text)
    if named is None:
        return _bare_extension(text)
    command = _NAMES[" ".join(named[1].lower().split())]
    filler = _FILLER.match(text, named.end())
    end = filler.end() if filler else named.end()
    if command is Command.CONTINUE:
        extension, after = _amounts(text, end, marked=False)
        if extension is not None:
            return Instruction(command=command, extension=extension, words=_words(text, after))
        joined = _WITH.match(text, end)
        if joined:
            return Instruction(command=command, words=_words(text, joined.end()))
    if _END.match(text, end):
        return Instruction(command=command, words=_words(text, end))
    return Instruction(words=text)


def _question(text: str) -> str:
    """The words of a question about the code, "" when it is anything else, or may be."""
    asked = _ASKED.match(text)
    if asked:
        return text[asked.end() :].strip()
    return text if _QUESTION.fullmatch(text) and not _WISH.search(text) else ""


def _bare_extension(text: str) -> Instruction:
    extend = _EXTEND.match(text)
    extension, after = _amounts(text, extend.end() if extend else 0, marked=extend is None)
    if extension is None:
        return Instruction(words=text)
    words = _words(text, after)
    return Instruction(command=Command.CONTINUE, extension=extension, words=words)


def _words(text: str, start: int) -> str:
    rest = text[start:].lstrip(_JUNK)
    joint = re.match(r"(?:and|but|then|with)\b[ \t,]{0,9}", rest, re.I)
    words = rest[joint.end() :].strip() if joint else rest.strip()
    return "" if _COURTESY.fullmatch(words) else words


def _amounts(text: str, start: int, *, marked: bool) -> tuple[Extension | None, int]:
    """The amounts that stand at `start`, and where they end. None when there are none, or when
    they are part of a sentence. marked: the first one must say that it is more of something."""
    lead = _LEAD.match(text, start)
    position = lead.end() if lead and not marked else start
    total: Extension | None = None
    for _ in range(_AMOUNTS):
        found = _AMOUNT.match(text, position)
        granted = _granted(found) if found else None
        if found is None or granted is None or not _ends_well(text, found.end()):
            break
        if marked and total is None and not (found["plus"] or found["more"] or found["after"]):
            break
        total = _added(total or Extension(), granted)
        end = found.end()
        joint = _JOINT.match(text, end)
        position = joint.end() if joint else end
    return total, end if total else start


def _ends_well(text: str, end: int) -> bool:
    """Whether an amount ends here, or is followed by another one, and is no part of a phrase."""
    return bool(_BOUNDARY.match(text, end)) or re.match(r"[ ]{0,3}\+", text[end:]) is not None


def _granted(found: "re.Match[str]") -> Extension | None:
    word = found["number"].lower()
    number = 1.0 if word in {"a", "an", "one"} else float(word.replace(",", ""))
    unit = (found["unit"] or "").lower()
    if found["dollar"] and unit:
        return None
    if found["dollar"] or unit in {"$", "usd"} or unit.startswith("dollar"):
        return Extension(budget=min(number, MOST.budget))
    if not unit or number == 0:
        return None
    if unit[:4] in {"iter", "step", "repl", "turn"}:
        return Extension(iterations=min(int(number), MOST.iterations)) if number >= 1 else None
    seconds = {"s": 1.0, "m": 60.0, "h": 3600.0}[unit[0]]
    return Extension(time=min(number * seconds, MOST.time))


def _added(one: Extension, two: Extension) -> Extension:
    return Extension(
        iterations=min(one.iterations + two.iterations, MOST.iterations),
        budget=min(one.budget + two.budget, MOST.budget),
        time=min(one.time + two.time, MOST.time),
    )
