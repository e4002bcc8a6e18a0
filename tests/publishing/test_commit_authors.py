"""Tests of the authors of a run's commits, whom each server links to its own accounts."""

import pytest

from resolver.publishing.commit_builder import co_authors, commit_identity
from tests.github import reports


@pytest.mark.parametrize(
    ("server", "host"),
    [
        ("https://github.com", "github.com"),
        ("https://git.example.com:8443/", "git.example.com"),
        ("https://octo.ghe.com", "octo.ghe.com"),
        ("", "github.com"),
    ],
)
def test_a_person_is_named_by_the_address_without_mail_of_their_own_server(
    server: str, host: str
) -> None:
    mona = reports.trigger(actor=reports.Actor(login="mona", id=7))
    [named] = co_authors(mona, server)
    assert (named.name, named.email) == ("mona", f"7+mona@users.noreply.{host}")


def test_the_number_of_the_actions_account_is_known_on_the_public_server_alone() -> None:
    own = commit_identity("github-actions[bot]", None, "https://github.com")
    assert own.email == "41898282+github-actions[bot]@users.noreply.github.com"
    there = commit_identity("github-actions[bot]", None, "https://git.example.com")
    assert there.email == "github-actions[bot]@users.noreply.git.example.com"
