"""Tests of recognizing credentials by their format, without false alarms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.security.redaction import MARK, Redactor

redact = Redactor([]).redact_text

A36 = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bD1fG3hJ5"
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiIxMjM0NTYifQ." + A36 * 12
PEM = "-----BEGIN OPENSSH PRIVATE KEY-----\n" + f"{A36}{A36[:28]}\n" * 6
CREDENTIALS = {
    **{f"GitHub {kind}": f"{kind}_{A36}" for kind in ("ghp", "gho", "ghu", "ghs", "ghr")},
    "GitHub installation, long": f"ghs_{JWT}",
    "GitHub fine-grained": f"github_pat_11ABCDEFG0{A36}_{A36}",
    "OpenAI": f"sk-proj-{A36}",
    "Anthropic": f"sk-ant-api03-{A36}-{A36}",
    "AWS": "AKIAIOSFODNN7EXAMPLE",
    "JWT": JWT,
    "PEM": PEM + "-----END OPENSSH PRIVATE KEY-----",
    "PEM without its end": PEM,
    "PEM in JSON": PEM.replace("\n", r"\n") + "-----END OPENSSH PRIVATE KEY-----",
}


@pytest.mark.parametrize("credential", CREDENTIALS.values(), ids=CREDENTIALS.keys())
@pytest.mark.parametrize("around", ["{}", "key={}", '"{}"', "see {}, please.", "https://x/?k={}&b"])
def test_a_credential_is_removed_anywhere(credential: str, around: str) -> None:
    # A key cut off before its end leaves no sign of where it ends but its lines.
    assert redact(around.format(credential)).split() == around.format(MARK).split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Bearer abc123.def", f"Authorization: Bearer {MARK}"),
        ("authorization: basic eHg6eXk=", f"authorization: basic {MARK}"),
        ("'Authorization': 'token abcdef99'", f"'Authorization': 'token {MARK}'"),
        ("AUTHORIZATION=0123456789abcdef", f"AUTHORIZATION={MARK}"),
        ("x-api-key: abcdef123456", f"x-api-key: {MARK}"),
        (
            "fatal: https://x-access-token:v1.abc@github.com/o/r",
            f"fatal: https://x-access-token:{MARK}@github.com/o/r",
        ),
        ("postgres://me:hunter22@db:5432/x", f"postgres://me:{MARK}@db:5432/x"),
    ],
)
def test_only_the_value_of_a_header_or_url_is_removed(text: str, expected: str) -> None:
    assert redact(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "ghp_ and ghs_ are prefixes; task-force-of-the-north-sea; disk-usage-in-the-folder-9",
        "sk-learn is not a key, nor is sk-some-words-with-hyphens-only",
        "https://github.com/o/r/pull/12 http://localhost:8080/x@y git@github.com:o/r.git",
        "Authorization: required. Authorization header. Authorization: Bearer $TOKEN",
        "8c1f0b52d3a94e0f8f0b6a1c5f1f7c2b9e3d4a55",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        'headers={"Authorization": f"token {token}"}',
    ],
)
def test_harmless_text_is_unchanged(text: str) -> None:
    assert redact(text) == text


def test_text_after_a_private_key_stays() -> None:
    text = f"before {CREDENTIALS['PEM']}\nafter, in words"
    assert redact(text) == f"before {MARK}\nafter, in words"


@given(st.text(), st.sampled_from(sorted(CREDENTIALS.values())), st.text())
def test_a_credential_is_found_in_any_context(before: str, credential: str, after: str) -> None:
    redact(before + credential + after)
