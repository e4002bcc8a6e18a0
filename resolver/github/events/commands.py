"""Finds a mention that a person really wrote, and parses the text after it into an instruction.

A mention counts in prose, not in code, quotes, links or HTML. The text is parsed as GitHub parses
it. Every possible mention is replaced by a number before parsing, so that a mention found in the
syntax tree can be located in the source.

An instruction is new work, a command for an existing run, or a question. A word counts as a command
only when it is the whole instruction: `stop` stops the run, `stop using mocks` is new work. A
leading slash makes a word a command whatever follows it. docs/reference/commands.md states the same
rules for users.
"""

import re
from collections import Counter

from markdown_it.token import Token

from resolver.github.text.hidden_text import end_of_readable, strip_hidden
from resolver.github.text.markdown import markdown_parser
from resolver.models.approval import split_decision_number
from resolver.models.base import FrozenModel
from resolver.models.run import Command, Extension

_NUMBERED_PLACEHOLDER = re.compile("\ue000([0-9]+)\ue001")
_FORGED_PLACEHOLDER = re.compile(
    "[\ue000\ue001\ufffc]|&#(?:x0*(?:e00[01]|fffc)|0*(?:5734[45]|65532));", re.I
)
"""The placeholders' characters in a comment, also as references, which Markdown resolves.

The references are those of https://spec.commonmark.org/0.31.2/#numeric-character-references.
"""
_NOT_PROSE_PLACEHOLDER = "\ufffc"
"""Placeholder for content that is not prose. No mention starts or ends next to it."""

# Text inside these elements is not the writer's own, or is not visible at once.
_NOT_PROSE_ELEMENTS = {
    "a", "blockquote", "code", "del", "details", "kbd", "pre", "q", "s", "samp", "script", "strike",
    "style", "summary", "svg", "template", "textarea", "title", "tt", "var",
}  # fmt: skip
_HTML_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]*)([^<>]{0,2000})>")
_HREF = re.compile(r"\bhref\b", re.I)
"""An `<a>` element without this attribute is the target of a link, not a link."""

_HIDDEN = re.compile(r"\bhidden\b|display\s*:\s*none", re.I)
_FOOTNOTE = re.compile(r"\[\^[^\]]+\]:")
_WHITESPACE = re.compile(r"\s")
_VOID_ELEMENTS = {"br", "hr", "img", "input", "link", "meta", "source", "wbr"}
"""Elements without content, which can't hide any text."""

# A login consists of ASCII letters, digits and hyphens. As on GitHub, any other character ends it,
# and most characters can stand before the "@". A slash is excluded because it belongs to a path.
# Source: https://github.com/gjtorikian/html-pipeline (node_filter/mention_filter.rb)
_BEFORE_LOGIN = re.compile(r"(?:^|[^A-Za-z0-9/@`\ue001\ufffc])$")
_BEFORE_WORD = re.compile(r"(?:^|[\s(\[{\"'*_~,;:!?\u2013\u2014\u201c\u2018\u00ab>])$")
_AFTER_MENTION = re.compile(r"(?![A-Za-z0-9_/@\-'’\ufffc]|\.[A-Za-z0-9_])")
_BOT_SUFFIX = re.compile(r"\[bot\](?![\[(])", re.I)
"""A suffix that belongs to the login of a GitHub App's account."""

_LEADING_PUNCTUATION = ",:;.!?)]*_ \t\n，、。．：；！？）］】」』》”’…–—"


def find_instruction(body: str, mention: str) -> str | None:
    """Return the text after the first real mention in a comment, or None when there is none.

    When nothing but a punctuation mark follows the mention, return the text before it, with a
    question mark if that is the mark. Hidden text is removed.
    """
    body = body.replace("\r\n", "\n").replace("\r", "\n")
    numbered_body, ends = _number_mentions(body, mention)
    if not ends:
        return None
    index = _find_first_in_prose(numbered_body[: end_of_readable(numbered_body)])
    if index is None:
        return None
    end = ends[index]
    bot_suffix = _BOT_SUFFIX.match(body, end)
    following = strip_hidden(body[bot_suffix.end() if bot_suffix else end :]).text.strip()
    instruction = following.lstrip(_LEADING_PUNCTUATION).strip()
    if instruction:
        return instruction
    text_before = strip_hidden(body[: end - len(mention)]).text.strip()
    if not following.startswith(("?", "？")):
        return text_before
    return text_before.rstrip(" \t\n,;:-，、；：") + "?"


def _number_mentions(body: str, mention: str) -> tuple[str, list[int]]:
    """Replace each possible mention in the body by its number.

    Returns the new body and, for each number, the offset in the original body where the mention
    ends. The first character of a mention stays, because Markdown parsing depends on it.
    """
    ends: list[int] = []

    def insert_number(match: re.Match[str]) -> str:
        ends.append(match.end())
        return f"{match[0][0]}\ue000{len(ends) - 1}\ue001"

    clean = _FORGED_PLACEHOLDER.sub(lambda match: "\ufffd" * len(match[0]), body)
    return re.sub(re.escape(mention), insert_number, clean, flags=re.I), ends


def _find_first_in_prose(numbered_body: str) -> int | None:
    """Return the number of the first mention in prose, or None."""
    quotes = 0
    open_elements = _OpenElements()
    for token in markdown_parser().parse(numbered_body):
        if token.type == "blockquote_open":
            quotes += 1
        elif token.type == "blockquote_close":
            quotes -= 1
        elif token.type == "html_block":
            open_elements.read(token.content)
        elif token.type == "inline":
            prose = _prose(token.children or [], open_elements)
            mention_number = None if quotes else _find_first_mention(prose)
            if mention_number is not None:
                return mention_number
    return None


class _OpenElements:
    """Tracks the open HTML elements whose text is not prose.

    An element that hides its text counts as open until the end of the comment, because its closing
    tag can't be recognized from the tag alone.
    """

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    def __bool__(self) -> bool:
        return self._open.total() > 0

    def read(self, html: str) -> None:
        """Update the open elements with the tags in `html`."""
        for closing, tag, attributes in _HTML_TAG.findall(html):
            name = tag.lower()
            if closing:
                self._open[name] -= self._open[name] > 0
            elif _HIDDEN.search(attributes):
                self._open["(hidden)"] += name not in _VOID_ELEMENTS
            elif name in _NOT_PROSE_ELEMENTS and (name != "a" or _HREF.search(attributes)):
                self._open[name] += 1


def _prose(children: list[Token], open_elements: _OpenElements) -> str:
    """Return the text of a block, with a placeholder for what is not the writer's own prose."""
    parts: list[str] = []
    links = 0
    for child in children:
        if child.type in {"link_open", "s_open"}:
            links += 1
        elif child.type in {"link_close", "s_close"}:
            links -= 1
            parts.append(_NOT_PROSE_PLACEHOLDER)
        elif child.type == "html_inline":
            open_elements.read(child.content)
            parts.append(" ")  # a tag ends a word, as a line break does
        elif child.type in {"code_inline", "image"}:
            parts.append(" ")  # GitHub also accepts a mention next to one of these
        elif child.type in {"softbreak", "hardbreak"}:
            parts.append("\n")
        elif child.type in {"em_open", "em_close", "strong_open", "strong_close"}:
            continue
        elif child.type == "text" and not links and not open_elements:
            parts.append(child.content)
        else:
            parts.append(_NOT_PROSE_PLACEHOLDER)
    return "".join(parts)


def _find_first_mention(prose: str) -> int | None:
    """Return the number of the first mention in a block's prose, or None."""
    if _FOOTNOTE.match(prose):
        return None
    word_start = scanned_end = 0
    for match in _NUMBERED_PLACEHOLDER.finditer(prose):
        start = match.start() - 1  # the mention's own first character
        # Each character is scanned once: a comment can be one long word full of mentions.
        word_start = max(
            (space.end() for space in _WHITESPACE.finditer(prose, scanned_end, start)),
            default=word_start,
        )
        scanned_end = start
        if (
            "://" in prose[word_start:start]
            or prose[word_start : min(word_start + 4, start)].lower() == "www."
        ):
            continue
        pattern = _BEFORE_LOGIN if prose[start] == "@" else _BEFORE_WORD
        if pattern.search(prose, max(0, start - 1), start) and _AFTER_MENTION.match(
            prose, match.end()
        ):
            return int(match[1])
    return None


MAX_EXTENSION = Extension(iterations=10_000, budget=10_000.0, time=7 * 24 * 3600.0)
"""The largest extension that one comment can request.

The operator's limits are far lower; this one only keeps absurd numbers out of the arithmetic.
"""

_MAX_AMOUNTS = 8
"""Maximum number of amounts read from one comment."""

# A text is one of these commands if the phrase is all that its first sentence says. Everything else
# is a request to the agent, so a phrase that is missing here costs little, and a wrong one much.
_PHRASES = {
    Command.STOP: "stop, cancel, abort, stop working, stop working on",
    Command.PAUSE: "pause",
    Command.RESUME: "resume, unpause",
    Command.CONTINUE: "continue, proceed, go on, carry on, keep going, extend",
    Command.APPROVE: "approve, approved",
    Command.DENY: "deny, denied, reject, rejected",
    Command.HELP: "help",
    Command.PUBLISH: "publish, publish the change, push, push the change",
    Command.UPDATE: "update, update the branch, update this branch, update the pr, update this pr, "
    "update this pull request, rebase, rebase on main, rebase onto main, rebase onto master, "
    "merge main, merge master, merge main into this branch, resolve conflicts, "
    "resolve the conflicts, resolve merge conflicts, resolve the merge conflicts, "
    "fix the conflicts, fix the merge conflicts",
}
_COMMANDS_BY_PHRASE = {
    phrase: command for command, phrases in _PHRASES.items() for phrase in phrases.split(", ")
}
_SLASH_COMMANDS = {
    **{
        phrase: command
        for phrase, command in _COMMANDS_BY_PHRASE.items()
        if phrase.isalpha() and phrase not in {"extend", "push", "rebase"}
    },
    "ask": Command.QUESTION,
    "review": Command.REVIEW,
    "fix": Command.FIX,
}
COMMAND_NAMES = tuple(_SLASH_COMMANDS)
"""Slash commands that exist in every repository.

No agent or skill of a repository can have one of these names.
"""

_SLASH = re.compile(r"/([A-Za-z0-9][\w-]{0,63})(?=$|\s|[:,.;!?](?:\s|$))[:,.;!?]?", re.A)
_POLITE = r"(?:(?:can|could|would|will)[ ]you[ ,]{1,3})?(?:please[ ,]{1,3})?"
_PHRASE = re.compile(
    rf"{_POLITE}(?P<phrase>{'|'.join(sorted(_COMMANDS_BY_PHRASE, key=len, reverse=True))})"
    r"(?:[ ](?:(?:the|this)[ ]run|for[ ]now|it|this|that|now|again|please)){0,4}"
    r"(?![\w'’-])",
    re.I,
)
_REVIEW = re.compile(rf"{_POLITE}(?:re-?)?review(?![\w'’-])", re.I)
_SENTENCE_END = re.compile(r"[ \t]{0,9}(?:$|[\n,.;:!?)*_\u2013\u2014]|-[ ])")
_CONTINUED = re.compile(r"[ \t]{1,9}(?:(?:and|but|with)\b|[-+$0-9])", re.I)
_PUNCTUATION = " \t\n,.;:!?)*_-\u2013\u2014"

_NUMBER = r"(?P<number>[0-9]{1,3}(?:,[0-9]{3}){1,3}|[0-9]{1,30}(?:\.[0-9]{1,4})?|an?|one)"
_MORE = r"(?:[ ]{1,3}(?:more|further|extra|additional|another))?"
_AMOUNT = re.compile(
    r"(?P<plus>\+[ ]?|(?:by|another|plus)[ ]{1,3})?"
    rf"(?P<dollar>\$[ ]?)?{_NUMBER}(?P<more>{_MORE})"
    r"(?:[ ]{0,3}(?P<unit>iterations?|steps?|replies|turns?|dollars?|usd|\$"
    r"|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h)(?![\w'’-]))?"
    rf"(?P<after>{_MORE})"
    # An amount that more words follow is part of a sentence: "with 2 minutes timeouts".
    r"(?=[ \t]{0,9}(?:$|[\n,.;:!?)*_+&\u2013\u2014]|-[ ]|(?:and|but|please|then)\b))",
    re.I,
)
_BEFORE_AMOUNT = re.compile(r"[ \t,:]{0,9}(?:(?:with|for|and)[ \t]{1,9})?", re.I)
_BETWEEN_AMOUNTS = re.compile(r"[ \t,;&]{0,9}(?:and[ \t]{1,9})?", re.I)

_MARKS = "\n.,;:!?&"
_WORD = re.compile(rf"[\w'’-]+|[{_MARKS}]")


def _word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_COURTESIES = _word_set("please pls thanks thank you")
_PRAISE = _word_set("thanks thank thx cheers lgtm good great perfect awesome nice done wow cool")
_WORDS_AROUND_PRAISE = _word_set(
    "you a lot so much many very and ok okay this that look looks to me well work job catch one"
)
_INTERROGATIVES = _word_set("why what how where which who when")
_ASKING_VERBS = _word_set("does do did is are was were")
_REQUESTING = _word_set("you we please pls possible")
_DOCUMENTS = _word_set(
    "readme docs doc documentation docstring docstrings changelog comment comments guide manual "
    "test tests"
)
_REVIEWED = _word_set(
    "it this that here again now please the these those my our latest last new whole pr prs pull "
    "request requests change changes diff diffs code commit commits branch patch work"
)
"""Words that say no more than what `review` alone means."""

_ASPECTS = _word_set(
    "for with whether if how only just especially mainly focus focusing the this that these those "
    "my our all"
)
"""Words that may follow `review` in a request to look at something specific."""

_CHANGES = _word_set(
    "fix repair correct change update edit rewrite refactor rename remove delete drop add apply "
    "implement address resolve commit push merge improve clean make write create replace revert "
    "rebase adapt adjust solve finish do move extract simplify"
)
_FEEDBACK = frozenset({"comments", "feedback"})
"""Words that refer to what others wrote: a request to review it is a request to follow it."""

_DETERMINERS = _word_set("the this that these those my our a")
_NEGATIONS = _word_set("don't don’t not without never no nothing")
_CONNECTIVES = frozenset(["and", "then", "also", "so", ",", "&"])


class Instruction(FrozenModel):
    """The parsed text of a mention.

    Attributes:
        command: What is asked for.
        named: The name after a slash when it is not a built-in command: an agent or a skill of the
            repository. Otherwise "".
        extension: Extra iterations, US dollars and seconds granted together with the command.
        text: The text that remains for the agent; "" when the command says everything.
    """

    command: Command = Command.FIX
    named: str = ""
    extension: Extension = Extension()
    text: str = ""


FIX = Instruction()
"""Work to do, without further text."""


def read_instruction(text: str, *, pull_request: bool = False) -> Instruction:
    """Parse the text after a mention into an instruction.

    Never raises: text that is not a command is work to do.

    - `stop`, `pause`, `resume` and `deny` count if the first sentence says nothing else. What
      follows is the reason.
    - `approve` counts alone, or with the number of an action. Any further text may be a condition.
    - `continue` may also be followed by `with`, `and` or `but`, or by amounts such as `+50
      iterations` or `$2 more`. Amounts alone (`+$2`, `extend by 1 hour`) mean `continue` as well.
    - `help`, `publish` and `update` count only when they stand alone.

    Args:
        text: The text after the mention.
        pull_request: True when the text was written on a pull request. Elsewhere, a request to
            review or update something specific is work.
    """
    text = text.strip()
    slash = _SLASH.match(text)
    if slash:
        return _read_slash_command(slash[1], text[slash.end() :].strip())
    if "?" in text and not text.strip("?!. \t\n"):
        return Instruction(command=Command.HELP)
    return (
        _read_question(text)
        or _read_review(text, pull_request)
        or _read_command(text, pull_request)
        or _read_amounts(text)
        or Instruction(text=text)
    )


def asks_for_nothing(text: str) -> bool:
    """Return True if the text after a mention only thanks or praises and expects no answer."""
    words = {word for word in _words(text) if word not in _MARKS}
    return bool(words & _PRAISE) and words <= _PRAISE | _WORDS_AROUND_PRAISE


def _words(text: str) -> list[str]:
    """Return the words and the punctuation marks of a text in lower case."""
    return [word.lower() for word in _WORD.findall(text)]


def _read_slash_command(name: str, text: str) -> Instruction:
    """Read a slash and a name: a built-in command, or an agent or skill of the repository."""
    command = _SLASH_COMMANDS.get(name.lower())
    if command is None:
        return Instruction(named=name, text=text)
    if command is Command.HELP or (command is Command.QUESTION and not text):
        return Instruction(command=Command.HELP)
    if command is Command.APPROVE and not _is_plain_approval(text):
        return Instruction(text=f"{name} {text}")
    if command is Command.CONTINUE:
        return _read_continuation(text, 0) or Instruction(command=command, text=text)
    return Instruction(command=command, text=text)


def _read_command(text: str, pull_request: bool) -> Instruction | None:
    """Read one of the phrases, and what may follow it; None if the text is anything else."""
    match = _PHRASE.match(text)
    if match is None:
        return None
    phrase, end = match["phrase"].lower(), match.end()
    command, rest = _COMMANDS_BY_PHRASE[phrase], text[end:]
    if command in {Command.HELP, Command.PUBLISH, Command.UPDATE}:
        is_possible = pull_request or command is not Command.UPDATE
        return Instruction(command=command) if is_possible and not _without_courtesy(rest) else None
    if command is Command.CONTINUE:
        return _read_continuation(text, end, needs_amount=phrase == "extend")
    is_decision = command in {Command.APPROVE, Command.DENY}
    is_numbered = is_decision and split_decision_number(rest)[0]
    if not is_numbered and not _SENTENCE_END.match(rest):
        return None
    if command is Command.APPROVE and not _is_plain_approval(rest):
        return None
    return Instruction(command=command, text=_without_courtesy(rest))


def _is_plain_approval(text: str) -> bool:
    """Return True if the text after `approve` can't restrict or retract the approval.

    The number of an action may stand between the two. No list of words could name all the ways to
    make a condition, so thanks are all that may follow.
    """
    _, text = split_decision_number(text)
    is_alone = text.strip(_PUNCTUATION).lower() in {"", *_COURTESIES}
    return "?" not in text and (is_alone or asks_for_nothing(text))


def _read_continuation(text: str, start: int, *, needs_amount: bool = False) -> Instruction | None:
    """Read what follows `continue` at `start`; None if it is part of a sentence."""
    extension, end = _sum_amounts(text, start, require_sign=False)
    is_end = _SENTENCE_END.match(text, start) or _CONTINUED.match(text, start)
    if extension is None and (needs_amount or not is_end):
        return None
    return Instruction(
        command=Command.CONTINUE,
        extension=extension or Extension(),
        text=_without_courtesy(text[end:]),
    )


def _read_amounts(text: str) -> Instruction | None:
    """Read amounts without a command (`+$2`, `1 hour more`)."""
    extension, end = _sum_amounts(text, 0, require_sign=True)
    if extension is None:
        return None
    return Instruction(
        command=Command.CONTINUE, extension=extension, text=_without_courtesy(text[end:])
    )


def _without_courtesy(text: str) -> str:
    """Return the text after a command without what joins it, or "" when it is only a courtesy."""
    text = text.lstrip(_PUNCTUATION).strip()
    joint = re.match(r"(?:and|but|then|with)\b[ \t,]{0,9}", text, re.I)
    text = text[joint.end() :].strip() if joint else text
    return "" if all(word in _COURTESIES or word in _MARKS for word in _words(text)) else text


def _read_question(text: str) -> Instruction | None:
    """Read a question about the code; None if the text may be anything else.

    It is one sentence: text after a question is usually a request for work.
    """
    prefix, colon, question = text.partition(":")
    if colon and prefix.strip(" \t").lower() == "question" and question.strip(" \t\n:"):
        return Instruction(command=Command.QUESTION, text=question.lstrip(" \t:").strip())
    if "\n" in text or any(mark + " " in text for mark in ".!?;"):
        return None
    words = _words(text)
    if _asks(words) or _asks_to_explain(words):
        return Instruction(command=Command.QUESTION, text=text)
    return None


def _asks(words: list[str]) -> bool:
    """Return True if a sentence is a question, and not a polite request."""
    if len(words) < 2 or words[-1] != "?" or words[1] == "about":
        return False
    first = re.split("['’]", words[0])[0]
    return first in _INTERROGATIVES | _ASKING_VERBS and not _REQUESTING.intersection(words)


def _asks_to_explain(words: list[str]) -> bool:
    """Return True if a sentence asks to explain something in the comment, and nothing more."""
    if words[1:2] == ["you"] and words[0] in {"can", "could", "would", "will"}:
        words = words[2:]
    if words[:1] == ["please"]:
        words = words[1:]
    verb = 2 if words[:1] in (["tell"], ["show"]) and words[1:2] in (["me"], ["us"]) else 1
    is_explain = verb == 2 or words[:1] == ["explain"]
    if not is_explain or not _INTERROGATIVES.union({"whether"}).intersection(
        words[verb : verb + 1]
    ):
        return False
    for position, word in enumerate(words):
        if word in _DOCUMENTS and {"in", "into", "to"}.intersection(words[position - 2 : position]):
            return False
        if word in _CONNECTIVES:
            return not _asks_for_change(words[position:])
    return True


def _read_review(text: str, pull_request: bool) -> Instruction | None:
    """Read a request for a review, with what to look at as its text.

    None when the text asks for something else, or for more than a review. On an issue, a review of
    something is work, and only a bare request is answered.
    """
    match = _REVIEW.match(text)
    if match is None or _asks_for_change(_words(text[match.end() :])):
        return None
    sentence = _SENTENCE_END.search(text, match.end())
    end = sentence.start() if sentence else len(text)
    words = _words(text[match.end() : end])
    if _REVIEWED.issuperset(words):
        subject = _without_courtesy(text[end:])
    elif words[0] in _ASPECTS:
        subject = text[match.end() :].strip()
    else:
        return None
    return (
        Instruction(command=Command.REVIEW, text=subject) if pull_request or not subject else None
    )


def _asks_for_change(words: list[str]) -> bool:
    """Return True if a text asks to change something.

    A verb after a negation asks for nothing, and one after a determiner is a noun ("the fix").
    """
    is_negated, previous = False, ""
    if not _FEEDBACK.isdisjoint(words):
        return True
    for word in words:
        if word in _NEGATIONS:
            is_negated = True
        elif word in _CONNECTIVES or word in _MARKS:
            is_negated = False
        elif word in _CHANGES and not is_negated and previous not in _DETERMINERS:
            return True
        previous = word
    return False


def _sum_amounts(text: str, start: int, *, require_sign: bool) -> tuple[Extension | None, int]:
    """Sum the amounts that stand at `start`.

    Returns the total and the position after the last amount. The total is None when there are no
    amounts or when they are part of a sentence.

    Args:
        text: The text after the mention.
        start: Position at which the amounts may begin.
        require_sign: Require the first amount to say that it is an addition ("+", "more",
            "another").
    """
    prefix = None if require_sign else _BEFORE_AMOUNT.match(text, start)
    position = prefix.end() if prefix else start
    total, end = None, start
    for _ in range(_MAX_AMOUNTS):
        match = _AMOUNT.match(text, position)
        amount = _read_amount(match) if match else None
        if match is None or amount is None:
            break
        is_addition = match["plus"] or match["more"] or match["after"]
        if require_sign and total is None and not is_addition:
            break
        total, end = _add_extensions(total or Extension(), amount), match.end()
        between = _BETWEEN_AMOUNTS.match(text, end)
        position = between.end() if between else end
    return total, end


def _read_amount(match: "re.Match[str]") -> Extension | None:
    """Return the extension that one matched amount stands for, or None if it is invalid."""
    word = match["number"].lower()
    number = 1.0 if word in {"a", "an", "one"} else float(word.replace(",", ""))
    unit = (match["unit"] or "").lower()
    if match["dollar"] and unit:
        return None
    if match["dollar"] or unit in {"$", "usd"} or unit.startswith("dollar"):
        return Extension(budget=min(number, MAX_EXTENSION.budget))
    if not unit or number == 0:
        return None
    if unit[:4] in {"iter", "step", "repl", "turn"}:
        return (
            Extension(iterations=min(int(number), MAX_EXTENSION.iterations))
            if number >= 1
            else None
        )
    seconds = {"s": 1.0, "m": 60.0, "h": 3600.0}[unit[0]]
    return Extension(time=min(number * seconds, MAX_EXTENSION.time))


def _add_extensions(first: Extension, second: Extension) -> Extension:
    """Add two extensions, each field limited to its maximum in `MAX_EXTENSION`."""
    return Extension(
        iterations=min(first.iterations + second.iterations, MAX_EXTENSION.iterations),
        budget=min(first.budget + second.budget, MAX_EXTENSION.budget),
        time=min(first.time + second.time, MAX_EXTENSION.time),
    )
