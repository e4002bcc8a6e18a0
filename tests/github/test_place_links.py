"""Tests of linking the places that an answer names."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.config.settings import Settings
from resolver.git.workspace import Workspace
from resolver.models.run import TriggerKind
from resolver.publishing.links import code_linker, link_code_places
from tests.git.scenario import make_repository
from tests.github import reports

PAGE = "https://github.com/o/n/blob/abc"
LENGTHS = {"calc.py": 5, "src/a-b/c.py": 40, ".github/x.yml": 3, "README.md": 9}


def linked(text: str) -> str:
    return link_code_places(text, PAGE, LENGTHS.get)


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("calc.py:2", f"[`calc.py:2`]({PAGE}/calc.py#L2)"),
        ("`calc.py:2-5`", f"[`calc.py:2-5`]({PAGE}/calc.py#L2-L5)"),
        ("src/a-b/c.py#L10-L12", f"[`src/a-b/c.py#L10-L12`]({PAGE}/src/a-b/c.py#L10-L12)"),
        (".github/x.yml:1", f"[`.github/x.yml:1`]({PAGE}/.github/x.yml#L1)"),
        ("README.md:9", f"[`README.md:9`]({PAGE}/README.md?plain=1#L9)"),
    ],
)
def test_a_place_that_exists_is_a_link(text: str, link: str) -> None:
    assert linked(f"See {text}.") == f"See {link}."
    assert linked(f"({text}), x") == f"({link}), x"


@pytest.mark.parametrize(
    "text",
    [
        "`calc.py`, line 2",
        "calc.py:6",
        "calc.py:4-9",
        "calc.py:3-2",
        "calc.py:0",
        "gone.py:1",
        "../calc.py:1",
        "/etc/calc.py:1",
        "at 12:30",
        "[calc.py:2](https://x.org)",
        "https://x.org/calc.py:2",
        "`grep calc.py:2 x`",
        "```\ncalc.py:2\n```",
        "```\nan open fence calc.py:2",
    ],
)
def test_other_text_stays_text(text: str) -> None:
    assert linked(text) == text


@given(st.text(alphabet="a`~[](). :#L12-/,\n"))
def test_without_a_file_nothing_changes(text: str) -> None:
    assert link_code_places(text, PAGE, lambda _: None) == text


def test_links_lead_to_the_commit_that_was_read_and_a_checkout_has_none(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "source", {"calc.py": "1\n2\n"})
    workspace = Workspace.clone(str(source), tmp_path / "clone")
    link = code_linker(reports.trigger(), Settings(), workspace)
    page = f"https://github.com/octo/demo/blob/{workspace.base}/calc.py#L2"
    assert link("See calc.py:2 and calc.py:3.") == f"See [`calc.py:2`]({page}) and calc.py:3."
    local = code_linker(reports.trigger(kind=TriggerKind.LOCAL), Settings(), workspace)
    assert local("See calc.py:2.") == "See calc.py:2."
