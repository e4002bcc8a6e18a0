"""Find a mention that a person really wrote, and parse the text after it into an instruction.

A mention counts in prose, not in code, quotes, links or HTML. The text is parsed as GitHub parses
it. Every possible mention is replaced by a number before parsing, so that a mention found in the
syntax tree can be located in the source.

An instruction is new work, a command for an existing run, or a question. A word counts as a command
only when it is the whole instruction: `stop` stops the run, `stop using mocks` is new work. A
leading slash makes a word a command whatever follows it. docs/commands.md states the same rules for
users.
"""

import re
from collections import Counter

from markdown_it.token import Token

from resolver.github.text.hidden_text import end_of_readable, strip_hidden
from resolver.github.text.markdown import markdown_parser
from resolver.models.approval import split_decision_number
from resolver.models.run import Command, Extension, FrozenModel

_NUMBERED_PLACEHOLDER = re.compile("\ue000([0-9]+)\ue001")
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

    clean = body.replace("\ue000", "\ufffd").replace("\ue001", "\ufffd")
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

_COMMANDS_BY_NAME = {
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
    "approve": Command.APPROVE,
    "approved": Command.APPROVE,
    "deny": Command.DENY,
    "denied": Command.DENY,
    "reject": Command.DENY,
    "rejected": Command.DENY,
}
_COMMAND_NAME = re.compile(
    r"(?:please[ ,]{1,3})?("
    + "|".join(n.replace(" ", "[ ]") for n in _COMMANDS_BY_NAME)
    + r")(?![\w'’-])",
    re.I,
)
_DECISIONS = frozenset({Command.APPROVE, Command.DENY})
_SLASH_COMMANDS = {
    **{name: command for name, command in _COMMANDS_BY_NAME.items() if " " not in name},
    "help": Command.HELP,
    "ask": Command.QUESTION,
    "review": Command.REVIEW,
    "fix": Command.FIX,
    "update": Command.UPDATE,
    "publish": Command.PUBLISH,
}
COMMAND_NAMES = tuple(_SLASH_COMMANDS)
"""Slash commands that exist in every repository.

No agent or skill of a repository can have one of these names.
"""

_SLASH = re.compile(r"/([A-Za-z0-9][\w-]{0,63})(?=$|\s|[:,.;!?](?:\s|$))[:,.;!?]?", re.A)
_HELP = re.compile(
    r"(?:(?:please[ ,]{1,3})?help(?:[ ,]{1,3}please)?|\?|what[ ]can[ ](?:you|i)[ ](?:do|ask)"
    r"(?:[ ]here)?)[\s.!?]{0,9}",
    re.I,
)
# A conditional approval ("approve, but only if ...") must not count as an approval.
_CONDITION = re.compile(
    r"(?:and[ ])?(?:but|if|unless|when|once|after|only|except|not|provided|as[ ]long|until|before"
    r"|wait|later|pending|assuming|subject|don['’]?t)\b",
    re.I,
)
# Words that may follow a command without turning it into a sentence about something else, such as
# "stop the run" or "pause for now".
_FILLER = re.compile(
    r"(?:[ \t]{1,3}(?:(?:the|this|that|your)[ ](?:run|work|job)|on[ ](?:it|this|that)|for[ ]now"
    r"|please|now|it|this|that|here|working|work|again))+(?![\w'’-])",
    re.I,
)
# The six-digit number of the action that an approval or denial refers to.
_NUMBERED = re.compile(r"[ \t]{1,9}(?=`?[0-9]{6}(?![\w.]))")
_COMMAND_END = re.compile(r"[ \t]{0,9}(?:$|[\n,.;:!?)*_\u2013\u2014]|-[ ])")
_CONJUNCTION = re.compile(r"[ \t]{1,9}(?:(?:and|but|with)\b[ \t]{0,9}|(?=[-+$0-9]))", re.I)
_COURTESY = re.compile(r"(?:please|thanks|thank you|pls)[\s.!]*", re.I)
_THANKS = re.compile(
    r"(?:(?:many[ ]|ok(?:ay)?,?[ ])?thanks?(?:[ ](?:you|a[ ]lot|so[ ]much))?(?:[ ]so[ ]much)?"
    r"|thx|cheers|lgtm|(?:this[ ]|that[ ])?looks?[ ](?:good|great)(?:[ ]to[ ]me)?"
    r"|perfect|awesome|nice|great|well[ ]done|(?:nice|great|good)[ ](?:work|job|catch|one)"
    r"|[\s.,!;)\u2764\ufe0f\U0001f389\U0001f44d\U0001f64f\U0001f680]){1,8}",
    re.I,
)

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
_SEPARATOR = re.compile(r"[ \t]{0,9}(?:[,;&]|\band\b|(?=\+))?[ \t]{0,9}(?:and[ ]{1,3})?", re.I)
_AMOUNT_PREFIX = re.compile(
    r"[ \t]{0,9}(?:[,:]?[ \t]{0,9}(?:with|for|and)\b[ \t]{1,9}|[,:]?[ \t]{0,9})", re.I
)
_BOUNDARY = re.compile(
    r"[ \t]{0,9}(?:$|[\n,.;:!?)*_\u2013\u2014]|-[ ]|(?:and|but|please|then)\b)", re.I
)
_EXTEND = re.compile(r"(?:please[ ,]{1,3})?extend\b(?:[ ](?:it|the run|this run))?", re.I)
_QUESTION_PREFIX = re.compile(r"question[ \t]{0,3}:[ \t:]{0,9}(?=\S)", re.I)
# One sentence only: text after a question is usually a request for work.
_QUESTION = re.compile(
    r"(?:why|what|how|where|which|who|when|does|do|is|are|was|were|did)(?:['’]s|['’]re)?[ ]"
    r"(?:(?![.!?;](?:\s|$))[^\n]){1,2000}\?",
    re.I,
)
_REQUEST_WORDS = re.compile(
    r"\b(?:you|we|please|pls|possible)\b|^(?:how|what)[ ]about\b|n['’]t\b.{0,20}\b(?:we|you)\b",
    re.I,
)
_EXPLAIN = re.compile(
    r"(?:(?:can|could|would|will)[ ]you[ ,]{1,3})?(?:please[ ,]{1,3})?"
    r"(?:explain|(?:tell|show)[ ](?:me|us))(?:[ ]to[ ](?:me|us))?[ ]"
    r"(?:why|what|how|where|which|who|when|whether)\b(?![^\n]{0,2000}\b(?:in|into|to)[ ]"
    r"(?:(?:the|a|an|our|its)[ ])?(?:readme|docs?|documentation|docstrings?|changelog|comments?"
    r"|guide|manual|tests?)\b)(?:(?![.!?;](?:\s|$))[^\n]){1,2000}[.?]?",
    re.I,
)
_CONNECTIVE = re.compile(r"[,&]|\b(?:and|then|also|so)\b", re.I)
_REVIEW = re.compile(
    r"(?:(?:can|could|would|will)[ ]you[ ,]{1,3})?(?:please[ ,]{1,3})?(?:re-?)?review(?![\w'’-])"
    r"(?:[ ]{1,3}(?:please|now|again|it|this|that|here|the[ ]whole"
    r"|(?:(?:the|this|that|these|those|my|our)[ ])?(?:(?:latest|last|new|whole)[ ])?"
    r"(?:prs?|pull[ ]requests?|changes?|diffs?|code|commits?|branch|patch|work))(?![\w'’-]))*",
    re.I,
)
_ASPECT = re.compile(
    r"[ ]{1,3}(?=(?:for|with|whether|if|how|only|just|especially|mainly|focus\w*|the|this|that"
    r"|these|those|my|our|all)\b)",
    re.I,
)
# A text that also asks for a change is work rather than only a review. The lookbehinds skip nouns
# such as "the fix".
_CHANGES = re.compile(
    r"\b(?:comments|feedback)\b"
    r"|(?<!the )(?<!this )(?<!that )(?<!these )(?<!those )(?<!my )(?<!our )(?<!a )"
    r"\b(?:fix|repair|correct|change|update|edit|rewrite|refactor|rename|remove|delete|drop|add"
    r"|implement|apply|address|resolve|commit|push|merge|improve|clean|make|write|create|replace"
    r"|revert|rebase|adapt|adjust|solve|finish|do|move|extract|simplify)\b",
    re.I,
)
_UNCHANGED = re.compile(
    r"\b(?:do[ ]not|don['’]?t|without|never|no[ ]need[ ]to|nothing[ ]to)\b[^.,;:!?\n]{1,60}", re.I
)
# An update of the whole branch from its base. Anything more specific is work.
_BRANCH = r"(?:(?:the|this|my|your)[ ])?(?:pr|pull[ ]request|branch)(?:['’]s[ ]branch)?"
_BASE = r"(?:(?:the[ ])?(?:base|default|target|main|master)(?:[ ]branch)?)"
_UPDATE = re.compile(
    r"(?:(?:can|could|would|will)[ ]you[ ,]{1,3})?(?:please[ ,]{1,3})?(?:"
    rf"(?:update|rebase)(?:[ ](?:it|this|{_BRANCH}))?(?:[ ](?:on|onto|from|with|to)[ ]{_BASE})?"
    rf"|merge[ ](?:in[ ])?{_BASE}(?:[ ](?:in|into)[ ](?:it|this|here|{_BRANCH}))?"
    rf"|bring[ ](?:it|this|{_BRANCH})[ ]up[ ]to[ ]date(?:[ ](?:with|to)[ ]{_BASE})?"
    r"|(?:resolve|fix|solve)[ ](?:the[ ]|these[ ]|all[ ]|any[ ])?(?:merge[ ])?conflicts?"
    rf"(?:[ ]with[ ]{_BASE})?"
    r")(?:,?[ ]please)?[\s.!?]{0,9}",
    re.I,
)
_PUBLISH = re.compile(
    r"(?:please[ ,]{1,3})?(?:try[ ]to[ ]|try[ ])?(?:publish|push)(?:ing)?"
    r"(?:[ ](?:it|this|that|the[ ]change|the[ ]patch|the[ ]branch))?(?:[ ](?:again|now))?"
    r"(?:[ ]please)?[\s.!]{0,9}",
    re.I,
)
_PUNCTUATION = " \t\n,.;:!?)*_-\u2013\u2014"


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

    - `stop`, `pause`, `resume`, `approve` and `deny` count only when nothing but a courtesy or a
      punctuation mark follows. `approve` and `deny` may also be followed by the number of an
      action.
    - `continue` may also be followed by `with`, `and` or `but`, or by amounts such as `+50
      iterations` or `$2 more`. Amounts alone (`+$2`, `extend by 1 hour`) mean `continue` as well.
    - `help` counts only when it stands alone.

    Args:
        text: The text after the mention.
        pull_request: True when the text was written on a pull request. Elsewhere, a request to
            review or update something specific is work.
    """
    text = text.strip()
    slash = _SLASH.match(text)
    if slash:
        return _parse_slash_command(slash[1], text[slash.end() :].strip())
    if _HELP.fullmatch(text):
        return Instruction(command=Command.HELP)
    question = _parse_question(text)
    if question:
        return Instruction(command=Command.QUESTION, text=question)
    review = _parse_review(text)
    if review is not None and (pull_request or not review.text):
        return review
    if pull_request and _UPDATE.fullmatch(text):
        return Instruction(command=Command.UPDATE)
    if _PUBLISH.fullmatch(text):
        return Instruction(command=Command.PUBLISH)
    return _parse_command(text)


def asks_for_nothing(text: str) -> bool:
    """Return True if the text after a mention only thanks or praises and expects no answer."""
    return _THANKS.fullmatch(text) is not None


def _parse_slash_command(name: str, text: str) -> Instruction:
    """Parse a slash and a name: a built-in command, or an agent or skill of the repository."""
    command = _SLASH_COMMANDS.get(name.lower())
    if command is None:
        return Instruction(named=name, text=text)
    if command is Command.HELP or (command is Command.QUESTION and not text):
        return Instruction(command=Command.HELP)
    if command is Command.APPROVE and not _is_unconditional(text):
        return Instruction(text=f"{name} {text}")
    if command is Command.CONTINUE:
        parsed = _parse_command(f"{name} {text}")
        if parsed.command is command:
            return parsed
    return Instruction(command=command, text=text)


def _parse_command(text: str) -> Instruction:
    """Parse a command for an existing run. Text that is not one is returned as work."""
    match = _COMMAND_NAME.match(text)
    if match is None:
        return _parse_bare_extension(text)
    command = _COMMANDS_BY_NAME[" ".join(match[1].lower().split())]
    filler = _FILLER.match(text, match.end())
    end = filler.end() if filler else match.end()
    if command is Command.CONTINUE:
        extension, amounts_end = _sum_amounts(text, end, require_sign=False)
        if extension is not None:
            return Instruction(
                command=command, extension=extension, text=_remaining_text(text, amounts_end)
            )
        conjunction = _CONJUNCTION.match(text, end)
        if conjunction:
            return Instruction(command=command, text=_remaining_text(text, conjunction.end()))
    number_gap = _NUMBERED.match(text, end) if command in _DECISIONS else None
    if number_gap:
        end = number_gap.end()
    elif not _COMMAND_END.match(text, end):
        return Instruction(text=text)
    if command is Command.APPROVE and not _is_unconditional(text[end:].lstrip(" \t")):
        return Instruction(text=text)
    return Instruction(command=command, text=_remaining_text(text, end))


def _is_unconditional(text: str) -> bool:
    """Return True if the text after `approve` does not restrict or retract the approval.

    The number of an action may stand between the two.
    """
    _, text = split_decision_number(text)
    return not text.startswith("?") and not _CONDITION.match(text.lstrip(_PUNCTUATION))


def _parse_review(text: str) -> Instruction | None:
    """Parse a request for a review, with what to look at as its text.

    Return None when the text asks for something else, or for more than a review.
    """
    match = _REVIEW.match(text)
    if match is None or _CHANGES.search(_UNCHANGED.sub("", text[match.end() :])):
        return None
    if not _COMMAND_END.match(text, match.end()) and not _ASPECT.match(text, match.end()):
        return None
    subject = text[match.end() :].lstrip(_PUNCTUATION).strip()
    return Instruction(command=Command.REVIEW, text="" if _COURTESY.fullmatch(subject) else subject)


def _parse_question(text: str) -> str:
    """Return the text of a question about the code, or "" when the text may be anything else."""
    prefix = _QUESTION_PREFIX.match(text)
    if prefix:
        return text[prefix.end() :].strip()
    if _EXPLAIN.fullmatch(text):
        connective = _CONNECTIVE.search(text)
        return "" if connective and _CHANGES.search(text, connective.end()) else text
    return text if _QUESTION.fullmatch(text) and not _REQUEST_WORDS.search(text) else ""


def _parse_bare_extension(text: str) -> Instruction:
    """Parse amounts without a command name (`+$2`, `extend by 1 hour`). Other text is work."""
    extend = _EXTEND.match(text)
    extension, amounts_end = _sum_amounts(
        text, extend.end() if extend else 0, require_sign=extend is None
    )
    if extension is None:
        return Instruction(text=text)
    remaining_text = _remaining_text(text, amounts_end)
    return Instruction(command=Command.CONTINUE, extension=extension, text=remaining_text)


def _remaining_text(text: str, start: int) -> str:
    """Return the text that remains after position `start`, or "" when it is only a courtesy."""
    remaining = text[start:].lstrip(_PUNCTUATION)
    conjunction = re.match(r"(?:and|but|then|with)\b[ \t,]{0,9}", remaining, re.I)
    remaining_text = remaining[conjunction.end() :].strip() if conjunction else remaining.strip()
    return "" if _COURTESY.fullmatch(remaining_text) else remaining_text


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
    prefix = _AMOUNT_PREFIX.match(text, start)
    position = prefix.end() if prefix and not require_sign else start
    total: Extension | None = None
    for _ in range(_MAX_AMOUNTS):
        match = _AMOUNT.match(text, position)
        amount = _parse_amount(match) if match else None
        if match is None or amount is None or not _is_amount_end(text, match.end()):
            break
        if (
            require_sign
            and total is None
            and not (match["plus"] or match["more"] or match["after"])
        ):
            break
        total = _add_extensions(total or Extension(), amount)
        end = match.end()
        separator = _SEPARATOR.match(text, end)
        position = separator.end() if separator else end
    return total, end if total else start


def _is_amount_end(text: str, end: int) -> bool:
    """Return True if an amount ends at `end` or is followed by another one.

    Otherwise it is part of a longer phrase.
    """
    return bool(_BOUNDARY.match(text, end)) or re.match(r"[ ]{0,3}\+", text[end:]) is not None


def _parse_amount(match: "re.Match[str]") -> Extension | None:
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
