"""What the examples and sentences of README, docs/ and the other pages name exists."""

from pathlib import Path

from tests.codebase.snippets import (
    PAGES,
    ROOT,
    check_commands,
    check_resolver_command,
    check_settings,
    check_variables,
    examples,
    inline_commands,
)
from tests.parts.cases import check_each
from tests.verification.suite.changes import CHANGES as SUITE


def test_the_commands_and_settings_of_the_examples_exist() -> None:
    found = [example for page in PAGES for example in examples(page)]
    check_each(found, check_commands, lambda example: example.place)
    check_each(found, check_settings, lambda example: example.place)


def test_the_commands_and_variables_that_the_pages_name_exist() -> None:
    def check(named: tuple[Path, str]) -> None:
        words = named[1].replace("`", "").split()[1:]
        check_resolver_command([word.strip("[]") for word in words])

    check_each(((page, line) for page in PAGES for line in inline_commands(page)), check)
    check_each(PAGES, check_variables)


def test_the_numbers_of_the_readme_are_those_of_the_tests() -> None:
    readme = (ROOT / "README.md").read_text()
    cheats = sum(change.cheats for change in SUITE)
    assert f"**0 of {cheats}** changes that delete, skip, replace or bypass tests" in readme
    assert f"all {len(SUITE)} changes of the suite" in readme
