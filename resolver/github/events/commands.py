"""Parses the text after a mention into an instruction.

An instruction is a command if its first word is one, alone or with its argument, or if it begins
with a slash. A word that controls a run, followed by any other text, is a message to the run:
`stop, use sqlite instead`. Everything else is a request to the agent, which decides whether it
answers or changes something. docs/reference/commands.md states the same rules for users.
"""

import re
from collections.abc import Callable

from resolver.models.approval import split_decision_number
from resolver.models.base import FrozenModel
from resolver.models.run import Command, Extension

_PUNCTUATION = " \t\n,.;:!*_-\u2013\u2014"
_WORD = re.compile(r"[\w'’-]+")
_COURTESIES = frozenset({"please", "thanks", "thank", "you"})


def _argument(text: str) -> str:
    """Return the text after a command, "" if it is only a courtesy."""
    text = text.lstrip(_PUNCTUATION).strip()
    words = {word.lower() for word in _WORD.findall(text)}
    return "" if words <= _COURTESIES and "?" not in text else text


def _takes_nothing(rest: str) -> bool:  # noqa: ARG001
    return False


def _takes_text(rest: str) -> bool:  # noqa: ARG001
    return True


def _takes_reason(rest: str) -> bool:
    """Return True for a new sentence or line."""
    return rest.startswith((".", ":", "!", "\n"))


def _takes_reason_or_number(rest: str) -> bool:
    return _takes_reason(rest) or split_decision_number(rest)[0] is not None


def _takes_number(rest: str) -> bool:
    """Return True for the number of an action and nothing that could be a condition."""
    number, following = split_decision_number(rest)
    return number is not None and not _argument(following)


def _takes_anyway(rest: str) -> bool:
    return _argument(rest).lower() == "anyway"


_COMMANDS: dict[str, tuple[Command, Callable[[str], bool]]] = {
    "stop": (Command.STOP, _takes_reason),
    "cancel": (Command.STOP, _takes_reason),
    "pause": (Command.PAUSE, _takes_reason),
    "resume": (Command.RESUME, _takes_reason),
    "continue": (Command.CONTINUE, _takes_text),
    "approve": (Command.APPROVE, _takes_number),
    "deny": (Command.DENY, _takes_reason_or_number),
    "reject": (Command.DENY, _takes_reason_or_number),
    "publish": (Command.PUBLISH, _takes_anyway),
    "update": (Command.UPDATE, _takes_nothing),
    "review": (Command.REVIEW, _takes_text),
    "ask": (Command.QUESTION, _takes_text),
    "help": (Command.HELP, _takes_nothing),
}
"""The first words that are commands, each with whether it is one with the text that follows.

Alone, or with a courtesy, each is a command.
"""

_CONTROLS = frozenset({Command.STOP, Command.PAUSE, Command.RESUME, Command.DENY, Command.APPROVE})
"""Commands that control a run. With any other text they are a message to it."""

REVIEW_COMMANDS = frozenset(
    {Command.FIX, Command.QUESTION, Command.REVIEW, Command.UPDATE, Command.HELP}
)
"""Commands that a review, or the text of an issue or pull request, can give."""

COMMAND_NAMES = (*_COMMANDS, "fix")
"""Slash commands that exist in every repository.

No agent or skill of a repository can have one of these names.
"""

_SLASH = re.compile(r"/([A-Za-z0-9][\w-]{0,63})(?=$|\s|[:,.;!?](?:\s|$))", re.A)
_FIRST_WORD = re.compile(r"(?:please[ ,]{1,3})?([a-z]+)(?![\w'’-])", re.I)


class Instruction(FrozenModel):
    """The parsed text of a mention.

    Attributes:
        command: What is asked for.
        named: The name after a slash when it is not a built-in command: an agent or a skill of the
            repository. Otherwise None.
        extension: Extra iterations, US dollars and seconds granted together with the command.
        text: The text that remains for the agent; "" when the command says everything.
    """

    command: Command = Command.FIX
    named: str | None = None
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
    text = text.strip()
    slash = _SLASH.match(text)
    if slash:
        return _read_slash(slash[1], text[slash.end() :], reaches_run)
    if "?" in text and not text.strip("?!. \t\n"):
        return Instruction(command=Command.HELP)
    extension, following = _read_amounts(text)
    if extension != Extension():
        following = _argument(following)
        return Instruction(command=Command.CONTINUE, extension=extension, text=following)
    word = _FIRST_WORD.match(text)
    command, takes = _COMMANDS.get(word[1].lower() if word else "", (None, _takes_nothing))
    if word is None or command is None:
        return Instruction(text=text)
    rest = text[word.end() :]
    is_elsewhere = command is Command.UPDATE or (command is Command.REVIEW and _argument(rest))
    if (not _argument(rest) or takes(rest)) and (pull_request or not is_elsewhere):
        return _command(command, rest)
    is_message = command in _CONTROLS and reaches_run
    return Instruction(command=Command.MESSAGE if is_message else Command.FIX, text=text)


def _read_slash(name: str, rest: str, reaches_run: bool) -> Instruction:
    """Read what follows a slash: a built-in command, or an agent or skill of the repository."""
    text = rest.removeprefix(rest[:1].strip()).strip()  # without one punctuation mark
    if name.lower() == "fix":
        return Instruction(text=text)
    command, takes = _COMMANDS.get(name.lower(), (None, _takes_nothing))
    if command is None:
        return Instruction(named=name, text=text)
    if command is Command.APPROVE and _argument(rest) and not takes(rest):
        # The text may be a condition, or a question.
        message = Command.MESSAGE if reaches_run else Command.FIX
        return Instruction(command=message, text=f"{name}{rest}")
    return _command(command, text)


def _command(command: Command, rest: str) -> Instruction:
    """Return the command with the text after its word as its argument."""
    argument = _argument(rest)
    if command is Command.CONTINUE:
        extension, following = _read_amounts(argument)
        return Instruction(command=command, extension=extension, text=_argument(following))
    if command is Command.HELP or (command is Command.QUESTION and not argument):
        return Instruction(command=Command.HELP)
    return Instruction(command=command, text=argument)


_PRAISE = {
    "thanks", "thank", "thx", "cheers", "lgtm", "good", "great", "perfect", "awesome", "nice",
    "done",
}  # fmt: skip
_WORDS_AROUND_PRAISE = {
    "you", "a", "lot", "so", "much", "many", "very", "and", "ok", "okay", "this", "that", "look",
    "looks", "to", "me", "well", "work", "job",
}  # fmt: skip


def asks_for_nothing(text: str) -> bool:
    """Return True if the text after a mention only thanks or praises and expects no answer."""
    words = {word.lower() for word in _WORD.findall(text)}
    return bool(words & _PRAISE) and words <= _PRAISE | _WORDS_AROUND_PRAISE


MAX_EXTENSION = Extension(iterations=10_000, budget=10_000.0, time=7 * 24 * 3600.0)
"""The largest extension that one comment can request.

The operator's limits are far lower; this one only keeps absurd numbers out of the arithmetic.
"""

_NUMBER = r"(?=[0-9.]*[1-9])([0-9]{1,30}(?:\.[0-9]{1,4})?)"
_AMOUNT = re.compile(
    rf"\+ ?(?:\$ ?{_NUMBER}|{_NUMBER} ?(iterations?|steps?|minutes?|mins?|m|hours?|h))"
    r"(?![\w.'’-])(?:[ \t,&]|and\b){0,9}",
    re.I,
)
_UNITS = {"$": ("budget", 1), "i": ("iterations", 1), "s": ("iterations", 1), "m": ("time", 60),
          "h": ("time", 3600)}  # fmt: skip
"""The field of `Extension` and the factor, by the first character of an amount's unit."""

_MAX_AMOUNTS = 8


def _read_amounts(text: str) -> tuple[Extension, str]:
    """Return the sum of the amounts that the text begins with, such as `+50 iterations, +$2`.

    The text after them is returned, too.
    """
    totals = {"iterations": 0.0, "budget": 0.0, "time": 0.0}
    end = 0
    for _ in range(_MAX_AMOUNTS):
        match = _AMOUNT.match(text, end)
        if match is None:
            break
        field, factor = _UNITS[(match[3] or "$")[0].lower()]
        limit = getattr(MAX_EXTENSION, field)
        totals[field] = min(totals[field] + factor * float(match[1] or match[2]), limit)
        end = match.end()
    return Extension.model_validate({**totals, "iterations": int(totals["iterations"])}), text[end:]
