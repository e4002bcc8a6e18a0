"""Findings of the risk rules, their risk level, names of secrets, and origins of output."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from resolver.models.approval import RiskLevel

# Tags of a `Flow`: its data was downloaded, is the environment, is a file's content, is a secret,
# was encoded (for example by base64), was decoded, or identifies the machine or its user.
FETCHED = "fetched"
ENVIRONMENT = "environment"
FILE = "file"
SECRET = "secret"  # noqa: S105 - the tag of one
ENCODED = "encoded"
DECODED = "decoded"
IDENTITY = "identity"

SECRET_FILE = re.compile(
    r"^\.env(?:\.(?!example$|sample$|template$|dist$|test$|defaults?$)[\w.]{1,40})?$"
    r"|(?:^|[._-])secrets?\.(?:ya?ml|json|txt|env|toml)$|^id_(?:rsa|dsa|ecdsa|ed25519)$"
)
"""Names of files that usually contain secrets."""

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:TOKEN|SECRET|SECRETS|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|APIKEY|PAT)(?:$|_)"
    r"|(?:API|ACCESS|PRIVATE|SECRET|SIGNING|ENCRYPTION|AUTH)_?KEY",
    re.I,
)
SECRET_WORD = re.compile(
    r"token|secret|passw?|credential|api.?key|access.?key|private.?key|auth|[_|^\\b\s.-]key\b|^key$|\|key",
    re.I,
)
"""Words that a command which searches the environment for secrets would look for."""

UNSET_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w{0,200})\}")
"""A variable that the analyzed text itself has not set, in the form that expansion leaves it in."""


def is_secret_name(name: str) -> bool:
    """Return True if a variable with that name is assumed to hold a secret."""
    return bool(_SECRET_NAME.search(name))


MAX_REASONS = 5
"""Maximum reasons given for one action; those of the highest level come first."""

LEVEL_ORDER = (RiskLevel.LOW, RiskLevel.MEDIUM, RiskLevel.HIGH)


@dataclass(frozen=True)
class RiskFinding:
    """Represents one rule that applies to an action.

    rule: name of the rule, for people and for settings.
    detail: what the rule found.
    """

    rule: str
    level: RiskLevel
    detail: str

    @property
    def reason(self) -> str:
        """The rule's name and what it found, on one line."""
        return f"{self.rule}: {self.detail}"


@dataclass(frozen=True)
class Risk:
    """Represents the risk level of an action with its reasons."""

    level: RiskLevel = RiskLevel.LOW
    reasons: tuple[str, ...] = ()


def high(rule: str, detail: str) -> RiskFinding:
    """Return a finding that makes an action a high risk, even if it is the only one."""
    return RiskFinding(rule, RiskLevel.HIGH, shorten_finding(detail))


def medium(rule: str, detail: str) -> RiskFinding:
    """Return a finding of medium level, which is worth a note in the log."""
    return RiskFinding(rule, RiskLevel.MEDIUM, shorten_finding(detail))


def shorten_finding(text: str) -> str:
    """Return the text on one line, truncated to 120 characters."""
    line = " ".join(text[:400].split())
    return line if len(line) <= 120 else f"{line[:119]}…"


def risk_of(findings: Iterable[RiskFinding]) -> Risk:
    """Return the highest level of the findings, with each reason once."""
    ranked = sorted(findings, key=lambda f: -LEVEL_ORDER.index(f.level))
    reasons = tuple(dict.fromkeys(finding.reason for finding in ranked))
    return Risk(ranked[0].level if ranked else RiskLevel.LOW, reasons[:MAX_REASONS])


def higher_level(first: RiskLevel, second: RiskLevel) -> RiskLevel:
    """Return the higher of two levels."""
    return max(first, second, key=LEVEL_ORDER.index)
