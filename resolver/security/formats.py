"""What credentials look like in general: the published formats of tokens and keys.

For values that are not known beforehand (a key in the repository's own .env). Values that
are known are found exactly, and in many encodings, by redaction.py.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple


class FoundCredential(NamedTuple):
    """Where a text holds something with a credential's form. `name` says which, for a person."""

    name: str
    start: int
    end: int


# Every pattern starts with a literal or an anchor that is rare, and every repetition is either
# over one character class or bounded, so that no text makes the search slower than linear.
_FORMATS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        # Old form: 36 letters and digits. New installation tokens: about 520 with dots.
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
            # Cut off before its end: the lines that still look like base64.
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
    """Everything in `text` that has a credential's form; spans may overlap."""
    for name, pattern in _FORMATS:
        for match in pattern.finditer(text):
            group = match.lastgroup or 0
            yield FoundCredential(name, match.start(group), match.end(group))
