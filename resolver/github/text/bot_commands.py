"""Makes commands to other bots inert.

Bots such as Prow, bors, Dependabot and ChatOps actions carry out what a line of a comment, a pull
request or a commit message begins with, in code blocks too. A model's text must not command them
in Resolver's name. Source: https://docs.prow.k8s.io/docs/components/plugins/,
https://docs.github.com/en/code-security/dependabot
"""

import re

WORD_JOINER = "\u2060"
"""A zero-width character that breaks a command after its first character."""

_BOTS = (
    "bors|claude|codecov|coderabbitai|codex|copilot|cursor|dependabot|github-actions|gemini-cli"
    "|greptileai|homu|k8s-ci-robot|mergify|mergifyio|pre-commit-ci|renovate|renovatebot|rustbot"
    "|sourcery-ai|sweep-ai"
)
_COMMAND = re.compile(
    r"^(?P<lead>(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*)"
    r"(?:"
    r"(?P<sign>[/!])(?=[a-z][a-z0-9_-]{1,40}(?:[ \t=]|$))"
    rf"|(?P<at>@)(?=(?:{_BOTS})(?:\[bot\])?(?:[ \t:,]|$))"
    r"|(?P<word>[bort])(?=(?<=b)ors:?[ \t]+[a-z]|(?<=o)k[ \t]to[ \t]test\b"
    r"|(?<=r)e(?:test[ \t]this|check$)|(?<=t)est[ \t]this[ \t]please)"
    r")",
    re.IGNORECASE | re.MULTILINE,
)


def without_bot_commands(text: str) -> str:
    """Return text that looks the same and in which no line begins with a command to a bot.

    The function is idempotent and takes linear time.
    """
    return _COMMAND.sub(rf"\g<0>{WORD_JOINER}", text)
