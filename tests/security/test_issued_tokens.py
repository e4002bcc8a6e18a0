"""Tests that secrets issued during work are known to every redactor."""

from datetime import UTC, datetime, timedelta

from resolver.security.redaction import IssuedTokens, Redactor

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_a_redactor_includes_tokens_issued_later() -> None:
    minted = IssuedTokens()
    redactor, other = Redactor(["given-secret-1"], minted), Redactor([], minted)
    text = "a given-secret-1 and minted-secret-2"
    assert redactor.redact_text(text) == "a [redacted] and minted-secret-2"
    minted.add("minted-secret-2", NOW + HOUR, NOW)
    assert redactor.redact_text(text) == "a [redacted] and [redacted]"
    assert other.holds_secret(text)
    assert not Redactor([]).holds_secret(text)


def test_expired_tokens_are_redacted_for_an_hour() -> None:
    minted = IssuedTokens()
    minted.add("first-secret", NOW + HOUR, NOW)
    minted.add("second-secret", NOW + 2 * HOUR, NOW + HOUR)
    assert minted.values == ("first-secret", "second-secret")
    minted.add("third-secret", NOW + 4 * HOUR, NOW + 3 * HOUR - timedelta(seconds=1))
    assert minted.values == ("second-secret", "third-secret")


def test_a_repeated_secret_is_stored_once() -> None:
    minted = IssuedTokens()
    minted.add("first-secret", NOW + HOUR, NOW)
    minted.add("first-secret", NOW + 2 * HOUR, NOW)
    assert minted.values == ("first-secret",)
