"""THREATS.md and docs/reference/attacks.md name tests that exist, and are up to date."""

import re
from pathlib import Path

from scripts.attacks_docs import attack_modules, attack_tests, attacks_page
from tests.parts.cases import check_each

ROOT = Path(__file__).parents[2]
THREATS = (ROOT / "THREATS.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", THREATS)))


def test_the_page_about_attacks_is_up_to_date() -> None:
    assert (ROOT / "docs/reference/attacks.md").read_text() == attacks_page(), "run `make docs`"


def test_every_test_of_an_attack_says_what_it_tries() -> None:
    silent = {
        f"{module}::{name}"
        for module in attack_modules()
        for name, text in attack_tests(module).items()
        if ": " not in text or not text.endswith(".")
    }
    assert silent == set(), "the first sentence of a docstring is `what is tried: what holds.`"


def test_the_threats_name_tests() -> None:
    assert len(NAMED) > 40
    rows = [line for line in THREATS.splitlines() if re.match(r"\| T\d+ ", line)]
    assert [row for row in rows if "`tests/" not in row] == []


def test_the_tests_that_the_threats_name_exist() -> None:
    def check(named: tuple[str, str]) -> None:
        module, name = named
        text = (ROOT / module).read_text()
        assert not name or f"\ndef {name}(" in text

    check_each(NAMED, check)
