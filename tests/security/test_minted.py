"""Secrets that come to be at work are known to every redactor from then on."""

from datetime import UTC, datetime, timedelta

from resolver.security.redaction import IssuedTokens, Redactor

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_a_redactor_learns_what_is_minted_after_it_was_made() -> None:
    minted = IssuedTokens()
    redactor, other = Redactor(["given-secret-1"], minted), Redactor([], minted)
    text = "a given-secret-1 and minted-secret-2"
    assert redactor.redact_text(text) == "a [redacted] and minted-secret-2"
    minted.add("minted-secret-2", NOW + HOUR, NOW)
    assert redactor.redact_text(text) == "a [redacted] and [redacted]"
    assert other.holds_secret(text)
    assert not Redactor([]).holds_secret(text)


def test_what_has_ended_is_kept_for_an_hour_and_then_forgotten() -> None:
    minted = IssuedTokens()
    minted.add("first-secret", NOW + HOUR, NOW)
    minted.add("second-secret", NOW + 2 * HOUR, NOW + HOUR)
    assert minted.values == ("first-secret", "second-secret")
    minted.add("third-secret", NOW + 4 * HOUR, NOW + 3 * HOUR - timedelta(seconds=1))
    assert minted.values == ("second-secret", "third-secret")


def test_the_same_secret_again_is_one() -> None:
    minted = IssuedTokens()
    minted.add("first-secret", NOW + HOUR, NOW)
    minted.add("first-secret", NOW + 2 * HOUR, NOW)
    assert minted.values == ("first-secret",)
