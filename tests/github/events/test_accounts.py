"""Which accounts are people, and whose events are ignored whatever they ask for."""

import pytest

from resolver.github.events.payloads import User
from resolver.github.events.starting_events import ListeningPolicy

BOT = "our-agent[bot]"


def reason(login: str, kind: str = "User", allowed: tuple[str, ...] = ()) -> str:
    policy = ListeningPolicy(
        mention="@agent",
        label="agent",
        bot_login=BOT,
        allowed_users=allowed,
    )
    found = policy.ignores(User(login=login, id=1, type=kind))
    return found.reason if found else ""


@pytest.mark.parametrize(
    ("login", "kind"),
    [("acme", "Organization"), ("helper", "Bot"), ("helper[bot]", "User"), ("helper[bot]", "Bot")],
)
def test_bots_and_organizations_are_none_unless_they_are_allowed(login: str, kind: str) -> None:
    assert "isn't a person" in reason(login, kind)
    assert reason(login, kind, allowed=(login.upper(),)) == ""


def test_our_own_account_is_ignored_even_if_it_is_allowed() -> None:
    assert "Resolver itself" in reason("Our-Agent[bot]", "Bot", allowed=(BOT,))
