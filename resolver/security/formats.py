"""Recognizes credentials by their published formats: tokens and keys of well-known services.

This finds credentials that are not known beforehand, such as a key in the repository's own `.env`.
`redaction.py` finds known values exactly, in many encodings.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple


class FoundCredential(NamedTuple):
    """Represents a part of a text that has the format of a credential.

    name: the kind of credential, for people.
    start, end: offsets in the text.
    """

    name: str
    start: int
    end: int


# Every pattern starts with a literal or an anchor that is rare, and every repetition is bounded or
# over a single character class, so that the search takes linear time on any text.
_FORMATS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        # Old format: 36 letters and digits. New installation tokens: about 520, with dots.
        ("GitHub token", r"gh[pousr]_[A-Za-z0-9_.\-]{15,}[A-Za-z0-9_]"),
        ("GitHub fine-grained token", r"github_pat_[A-Za-z0-9_]{20,}"),
        ("GitLab token", r"glpat-[A-Za-z0-9_\-]{20,}"),
        ("model API key", r"(?<![A-Za-z0-9])sk-(?=[A-Za-z_\-]{0,200}[0-9])[A-Za-z0-9_\-]{20,}"),
        ("AWS access key", r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Z])"),
        ("Google API key", r"AIza[0-9A-Za-z_\-]{35}"),
        ("Slack token", r"xox[abeoprs]-[A-Za-z0-9\-]{10,}"),
        ("npm token", r"(?<![A-Za-z0-9])npm_[A-Za-z0-9]{36}"),
        ("PyPI token", r"pypi-AgE[A-Za-z0-9_\-]{50,}"),
        ("Hugging Face token", r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{30,}"),
        (
            "JSON web token",
            r"(?<![A-Za-z0-9_\-])eyJ[A-Za-z0-9_\-]{10,}(?:\.[A-Za-z0-9_\-]{10,}){2}",
        ),
        (
            "private key",
            r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----"
            r"(?:(?:(?!-----BEGIN)[\s\S]){0,20000}?-----END [A-Z ]{0,40}PRIVATE KEY-----"
            # Truncated before its end line: the lines that still look like base64.
            r"|(?:\s|\\[nr]|[A-Za-z0-9+/=]{16,}+)*+)",
        ),
        (
            "Authorization header",
            r"(?i:authorization)[\"']?[ \t]{0,8}[:=][ \t]{0,8}[\"']?"
            r"(?:(?i:basic|bearer|token|digest|apikey)[ \t]{1,8}(?P<a>[A-Za-z0-9._~+/=\-]{4,})"
            r"|(?P<b>[A-Za-z0-9._~+/=\-]{16,}))",
        ),
        (
            "API key header",
            r"(?i:x-(?:goog-)?api-key)[\"']?[ \t]{0,8}[:=][ \t]{0,8}[\"']?"
            r"(?P<a>[A-Za-z0-9._~+/=\-]{8,})",
        ),
        ("token in a URL", r"x-access-token:(?P<a>[^\s@\"'<>]{4,})"),
        ("password in a URL", r"://[^\s/:@\"'<>]{0,200}:(?P<a>[^\s/@\"'<>]{3,1000})@"),
    )
)


def find_credentials(text: str) -> Iterator[FoundCredential]:
    """Yield every part of the text that has the format of a credential; parts may overlap."""
    for name, pattern in _FORMATS:
        for match in pattern.finditer(text):
            group = match.lastgroup or 0
            yield FoundCredential(name, match.start(group), match.end(group))
