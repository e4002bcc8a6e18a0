"""Finds a mention that a person really wrote, and parses the text after it into an instruction.

A mention counts in prose, not in code, quotes, links or HTML. The text is parsed as GitHub parses
it. Every possible mention is replaced by a number before parsing, so that a mention found in the
syntax tree can be located in the source.

An instruction is a command if its first word is one, alone or with its argument, or if it begins
with a slash. A word that controls a run, followed by any other text, is a message to the run:
`stop, use sqlite instead`. Everything else is a request to the agent, which decides whether it
answers or changes something. docs/reference/commands.md states the same rules for users.
"""

import re

from resolver.github.text.hidden_text import end_of_readable, strip_hidden
from resolver.github.text.markdown import markdown_parser
from resolver.github.text.page import PageReader, sanitize
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

_NOT_PROSE_ELEMENTS = {
    "blockquote", "code", "del", "details", "kbd", "pre", "q", "s", "samp", "strike", "summary",
    "tt", "var",
}  # fmt: skip
"""Elements whose text is not the writer's own, or is not visible at once."""

_BLOCK_ELEMENTS = {"p", "li", "h1", "h2", "h3", "h4", "h5", "h6", "td", "th", "blockquote", "pre"}
_FOOTNOTE = re.compile(r"\[\^[^\]]+\]:")
_WHITESPACE = re.compile(r"\s")

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
    parser = markdown_parser()
    tokens = parser.parse(numbered_body)
    for token in tokens:
        if token.type == "html_block":
            token.content = _NUMBERED_PLACEHOLDER.sub(_NOT_PROSE_PLACEHOLDER, token.content)
    prose = _Prose()
    prose.feed(sanitize(parser.renderer.render(tokens, parser.options, {})))
    prose.close()
    numbers = (_find_first_mention(block) for block in prose.blocks)
    return next((number for number in numbers if number is not None), None)


class _Prose(PageReader):
    """Collects the text of each block, with placeholders for what is not the writer's own prose."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = [""]

    def hides(self, tag: str, attributes: dict[str, str]) -> bool:
        is_link = tag == "a" and "href" in attributes
        return is_link or tag in _NOT_PROSE_ELEMENTS or super().hides(tag, attributes)

    def start(self, tag: str, attributes: dict[str, str], *, is_hidden: bool) -> None:  # noqa: ARG002
        if tag in _BLOCK_ELEMENTS:
            self.blocks.append("")
        elif tag not in {"em", "strong"} and not is_hidden:
            self.blocks[-1] += " "  # a tag ends a word, as a line break does

    def end(self, tag: str, *, is_hidden: bool) -> None:
        if tag in _BLOCK_ELEMENTS:
            self.blocks.append("")
        elif tag == "code":
            self.blocks[-1] += " "  # GitHub also accepts a mention next to code
        elif is_hidden:
            self.blocks[-1] += _NOT_PROSE_PLACEHOLDER
        elif tag not in {"em", "strong"}:
            self.blocks[-1] += " "

    def add(self, text: str, *, is_hidden: bool) -> None:
        self.blocks[-1] += _NOT_PROSE_PLACEHOLDER if is_hidden else text


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

_COMMANDS = {
    "stop": Command.STOP,
    "cancel": Command.STOP,
    "pause": Command.PAUSE,
    "resume": Command.RESUME,
    "continue": Command.CONTINUE,
    "approve": Command.APPROVE,
    "deny": Command.DENY,
    "reject": Command.DENY,
    "publish": Command.PUBLISH,
    "update": Command.UPDATE,
    "review": Command.REVIEW,
    "ask": Command.QUESTION,
    "help": Command.HELP,
}
"""The first words that are commands."""

_WITH_TEXT = frozenset({Command.CONTINUE, Command.REVIEW, Command.QUESTION})
"""Commands that any text may follow."""

_WITH_REASON = frozenset({Command.STOP, Command.PAUSE, Command.RESUME, Command.DENY})
"""Commands that a reason may follow, as a new sentence or line."""

_CONTROLS = _WITH_REASON | {Command.APPROVE}
"""Commands that control a run. With any other text they are a message to it."""

REVIEW_COMMANDS = frozenset(
    {Command.FIX, Command.QUESTION, Command.REVIEW, Command.UPDATE, Command.HELP}
)
"""Commands that a review, or the text of an issue or pull request, can give."""

COMMAND_NAMES = (*_COMMANDS, "fix")
"""Slash commands that exist in every repository.

No agent or skill of a repository can have one of these names.
"""

_SLASH = re.compile(r"/([A-Za-z0-9][\w-]{0,63})(?=$|\s|[:,.;!?](?:\s|$))[:,.;!?]?", re.A)
_FIRST_WORD = re.compile(r"(?:please[ ,]{1,3})?([a-z]+)(?![\w'’-])", re.I)
_PUNCTUATION = " \t\n,.;:!*_-\u2013\u2014"
_AMOUNT = re.compile(
    r"\+ ?(?P<dollar>\$ ?)?(?P<number>[0-9]{1,30}(?:\.[0-9]{1,4})?)(?(dollar)|"
    r" ?(?P<unit>iterations?|steps?|minutes?|mins?|m|hours?|h))(?![\w.'’-])(?:[ \t,&]|and\b){0,9}",
    re.I,
)
_MAX_AMOUNTS = 8
"""Maximum number of amounts read from one comment."""

_WORD = re.compile(r"[\w'’-]+")
_COURTESIES = frozenset({"please", "thanks", "thank", "you"})
_PRAISE = {
    "thanks", "thank", "thx", "cheers", "lgtm", "good", "great", "perfect", "awesome", "nice",
    "done",
}  # fmt: skip
_WORDS_AROUND_PRAISE = {
    "you", "a", "lot", "so", "much", "many", "very", "and", "ok", "okay", "this", "that", "look",
    "looks", "to", "me", "well", "work", "job",
}  # fmt: skip


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


def read_instruction(
    text: str, *, pull_request: bool = False, reaches_run: bool = False
) -> Instruction:
    """Parse the text after a mention into an instruction.

    Never raises: text that is not a command is a request to the agent.

    Args:
        text: The text after the mention.
        pull_request: True when the text was written on a pull request. Elsewhere, a request to
            review or update something specific is work.
        reaches_run: True when the text was written where an active run reads it. Elsewhere, a
            message to a run is a request.
    """
    instruction = _read(text.strip(), pull_request)
    if instruction.command is Command.MESSAGE and not reaches_run:
        return Instruction(text=instruction.text)
    return instruction


def _read(text: str, pull_request: bool) -> Instruction:
    slash = _SLASH.match(text)
    if slash:
        return _read_slash_command(slash[1], text[slash.end() :].strip())
    if "?" in text and not text.strip("?!. \t\n"):
        return Instruction(command=Command.HELP)
    if text.startswith("+"):
        extension, end = _sum_amounts(text, 0)
        if extension is not None:
            return Instruction(
                command=Command.CONTINUE, extension=extension, text=_argument(text[end:])
            )
    word = _FIRST_WORD.match(text)
    command = _COMMANDS.get(word[1].lower()) if word else None
    if word is None or command is None:
        return Instruction(text=text)
    rest = text[word.end() :]
    argument = _argument(rest)
    is_command = (
        not argument
        or command in _WITH_TEXT
        or (command is Command.APPROVE and _is_action_number(rest))
        or (command is Command.DENY and bool(split_decision_number(rest)[0]))
        or (command is Command.PUBLISH and argument.lower() == "anyway")
        or (command in _WITH_REASON and rest.startswith((".", ":", "!", "\n")))
    )
    if command is Command.UPDATE or (command is Command.REVIEW and argument):
        is_command = is_command and pull_request
    if is_command:
        return _command(command, rest)
    return Instruction(command=Command.MESSAGE if command in _CONTROLS else Command.FIX, text=text)


def _read_slash_command(name: str, text: str) -> Instruction:
    """Read a slash and a name: a built-in command, or an agent or skill of the repository."""
    if name.lower() == "fix":
        return Instruction(text=text)
    command = _COMMANDS.get(name.lower())
    if command is None:
        return Instruction(named=name, text=text)
    if command is Command.APPROVE and _argument(text) and not _is_action_number(text):
        # The text may be a condition.
        return Instruction(command=Command.MESSAGE, text=f"{name} {text}")
    return _command(command, text)


def _command(command: Command, rest: str) -> Instruction:
    """Return the command with the text after its word as its argument."""
    argument = _argument(rest)
    if command is Command.CONTINUE:
        start = len(rest) - len(rest.lstrip())
        extension, end = _sum_amounts(rest, start)
        text = _argument(rest[end:]) if extension else argument
        return Instruction(command=command, extension=extension or Extension(), text=text)
    if command is Command.HELP or (command is Command.QUESTION and not argument):
        return Instruction(command=Command.HELP)
    return Instruction(command=command, text=argument)


def _argument(text: str) -> str:
    """Return the text after a command, "" if it is only a courtesy."""
    text = text.lstrip(_PUNCTUATION).strip()
    words = {word.lower() for word in _WORD.findall(text)}
    return "" if words <= _COURTESIES and "?" not in text else text


def _is_action_number(text: str) -> bool:
    """Return True if the text is the number of an action and nothing that could be a condition."""
    number, rest = split_decision_number(text)
    return bool(number) and not _argument(rest)


def asks_for_nothing(text: str) -> bool:
    """Return True if the text after a mention only thanks or praises and expects no answer."""
    words = {word.lower() for word in _WORD.findall(text)}
    return bool(words & _PRAISE) and words <= _PRAISE | _WORDS_AROUND_PRAISE


def _sum_amounts(text: str, start: int) -> tuple[Extension | None, int]:
    """Return the sum of the amounts at `start`, such as `+50 iterations, +$2`, and their end.

    The sum is None when there are none.
    """
    total, end = None, start
    for _ in range(_MAX_AMOUNTS):
        match = _AMOUNT.match(text, end)
        if match is None or not float(match["number"]):
            break
        total, end = _add_amount(total or Extension(), match), match.end()
    return total, end


def _add_amount(total: Extension, match: "re.Match[str]") -> Extension:
    """Return the sum with one more amount, each field limited to its maximum."""
    number, unit = float(match["number"]), (match["unit"] or "$").lower()
    if unit == "$":
        return total.model_copy(update={"budget": min(total.budget + number, MAX_EXTENSION.budget)})
    if unit[0] in "is":
        iterations = min(total.iterations + number, MAX_EXTENSION.iterations)
        return total.model_copy(update={"iterations": int(iterations)})
    seconds = number * (60.0 if unit[0] == "m" else 3600.0)
    return total.model_copy(update={"time": min(total.time + seconds, MAX_EXTENSION.time)})
