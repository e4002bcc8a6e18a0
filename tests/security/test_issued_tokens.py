"""Tests that secrets issued during work are known to every redactor."""

from datetime import UTC, datetime, timedelta

from resolver.security.redaction import IssuedTokens, Redactor

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_a_redactor_includes_tokens_issued_later() -> None:
    issued = IssuedTokens()
    redactor, other = Redactor(["given-secret-1"], issued), Redactor([], issued)
    text = "a given-secret-1 and issued-secret-2"
    assert redactor.redact_text(text) == "a [redacted] and issued-secret-2"
    issued.add("issued-secret-2", NOW + HOUR, NOW)
    assert redactor.redact_text(text) == "a [redacted] and [redacted]"
    assert other.holds_secret(text)
    assert not Redactor([]).holds_secret(text)


def test_expired_tokens_are_redacted_for_an_hour() -> None:
    issued = IssuedTokens()
    issued.add("first-secret", NOW + HOUR, NOW)
    issued.add("second-secret", NOW + 2 * HOUR, NOW + HOUR)
    assert issued.values == ("first-secret", "second-secret")
    issued.add("third-secret", NOW + 4 * HOUR, NOW + 3 * HOUR - timedelta(seconds=1))
    assert issued.values == ("second-secret", "third-secret")


def test_a_repeated_secret_is_stored_once() -> None:
    issued = IssuedTokens()
    issued.add("first-secret", NOW + HOUR, NOW)
    issued.add("first-secret", NOW + 2 * HOUR, NOW)
    assert issued.values == ("first-secret",)
