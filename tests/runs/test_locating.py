"""The agent that finds places, from an issue to its answer, and as a delegate.

Whole runs, because the index is of the clone on the host, and the answers are in the log.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from resolver.events.actions import CodeExplore, CodeSearch, Finish
from resolver.events.lifecycle import DelegateEvent
from resolver.events.log import parse_logged_event
from resolver.events.observations import CodeResult, DelegateResult
from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import Answer, ModelEndpoint, reply, tool_call
from tests.parts.runs import CommandLine, Ended, bash, finish, git, make_checkout
from tests.runs.test_github import REPOSITORY, Scenario

FILES = {
    "shop/cart.py": "from shop.price import total\n\n\nclass Cart:\n    def pay(self, items):\n"
    "        return total(items)\n",
    "shop/price.py": "def total(items):\n    return sum(items) - 1\n",
}
ISSUE = "# The cart asks for one too few\n\n`Cart.pay([2])` gives 1."
SEARCH = tool_call("search_code", {"terms": ["Cart.pay", "shop/price.py:2"]})
EXPLORE = tool_call(
    "explore_code", {"start": ["shop/price.py::total"], "direction": "upstream", "depth": 2}
)
PLACES = [
    {"path": "shop/price.py", "start": 2, "end": 2, "symbol": "total", "why": "takes one away"},
    {"path": "shop/price.py", "start": 90, "end": 99, "symbol": "", "why": "was made up"},
]


def report(completed: bool = True) -> Answer:
    return tool_call(
        "report_places",
        {"message": "The sum is one too small.", "places": PLACES, "task_completed": completed},
    )


def results(done: Ended) -> list[str]:
    return [event.content for event in done.events if isinstance(event, CodeResult)]


def test_an_issue_is_answered_with_places_and_no_branch(
    command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    checkout = make_checkout(tmp_path / "shop", FILES)
    model_endpoint.script(SEARCH, EXPLORE, report())
    done = command_line.resolve(checkout, "--agent", "LocAgent", issue=ISSUE)
    assert done.exit_code == 0, done.stderr
    found, walked = results(done)
    assert "5      def pay(self, items):" in found or "method shop/cart.py::Cart.pay [5-6]" in found
    assert "2      return sum(items) - 1" in found
    assert "<- calls method shop/cart.py::Cart.pay [5-6]" in walked
    assert "<- contains class shop/cart.py::Cart [4-6]" in walked
    assert done.outcome["base"] in {e.commit for e in done.events if isinstance(e, CodeResult)}
    [first, second] = done.outcome["places"]
    assert (first["path"], first["start"], first["known"]) == ("shop/price.py", 2, True)
    assert second["known"] is False
    assert "1. `shop/price.py:2` (total): takes one away" in done.outcome["message"]
    assert (
        "2. `shop/price.py:90-99`: was made up *(not found in the commit" in done.outcome["message"]
    )
    assert git(checkout, "branch", "--list", "agent/*") == ""
    trace = (done.output / "trace.md").read_text()
    assert "Search the code for" in trace and "Explore the code from" in trace
    assert "- shop/price.py:2 total" in trace


@pytest.mark.nightly
def test_the_index_is_of_the_base_and_says_so(
    command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    checkout = make_checkout(tmp_path / "shop", FILES)
    write = bash("printf 'def brand_new(): ...\\n' > shop/new.py && git add -A && git commit -qm x")
    model_endpoint.script(write, tool_call("search_code", {"terms": ["brand_new"]}), report())
    done = command_line.call_resolve(checkout, "--agent", "LocAgent", issue=ISSUE)
    [found] = results(done)
    assert "Nothing has this name" in found
    base = done.outcome["base"]
    assert f"[index of commit {base[:12]}, from which the work started: later edits" in found


def test_the_main_agent_hands_the_search_over_and_fixes_what_was_found(
    command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    checkout = make_checkout(tmp_path / "shop", FILES)
    hand_on = tool_call("delegate", {"agent": "LocAgent", "task": "Where does pay() lose one?"})
    model_endpoint.script(
        hand_on, SEARCH, report(), bash("sed -i 's/ - 1//' shop/price.py"), finish("Sum it all up")
    )
    done = command_line.resolve(checkout, issue=ISSUE)
    assert done.exit_code == 0, done.stderr
    [result] = [event for event in done.events if isinstance(event, DelegateResult)]
    assert result.outputs["places"][0]["path"] == "shop/price.py"
    assert "- shop/price.py:2 total: takes one away\n" in result.content
    assert "- shop/price.py:90-99: was made up (not found" in result.content
    inner = [parse_logged_event(e.event) for e in done.events if isinstance(e, DelegateEvent)]
    assert [type(e) for e in inner if isinstance(e, CodeSearch | CodeResult | Finish)] == [
        CodeSearch,
        CodeResult,
        Finish,
    ]
    assert "-    return sum(items) - 1" in (done.output / "patch.diff").read_text()


@pytest.mark.nightly
def test_the_main_agent_is_not_offered_the_index_itself(
    command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    checkout = make_checkout(tmp_path / "shop", FILES)
    model_endpoint.script(finish("Nothing", completed=False))
    command_line.call_resolve(checkout, issue=ISSUE)
    asked = str(model_endpoint.requests[0].body)
    assert "search_code" not in asked
    assert "LocAgent" in asked


@pytest.mark.nightly
def test_in_tags_the_same_work_gives_the_same_places(
    command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    checkout = make_checkout(tmp_path / "shop", FILES)
    model_endpoint.script(
        reply("<search_code>\nCart.pay\nshop/price.py:2\n</search_code>"),
        reply('<explore_code direction="upstream">\nshop/price.py::total\n</explore_code>'),
        reply(
            "<report_places>\n<message>\nThe sum is one too small.\n</message>\n"
            "<places>\nshop/price.py:2 total - takes one away\n</places>\n</report_places>"
        ),
    )
    done = command_line.call_resolve(
        checkout, "--agent", "LocAgent", "--dialect", "tags", issue=ISSUE
    )
    assert done.exit_code == 0, done.stderr
    assert len([e for e in done.events if isinstance(e, CodeSearch | CodeExplore)]) == 2
    assert "2      return sum(items) - 1" in results(done)[0]
    assert done.outcome["places"][0]["symbol"] == "total"


@pytest.mark.nightly
def test_a_replay_asks_the_index_again_and_a_continued_run_only_what_was_not_answered(
    command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    """Whole runs, because both start from the log of another one."""
    checkout = make_checkout(tmp_path / "shop", FILES)
    model_endpoint.script(SEARCH, EXPLORE, report())
    whole = command_line.call_resolve(checkout, "--agent", "LocAgent", issue=ISSUE)
    log = whole.output / "events.jsonl"
    replayed = command_line.call_resolve(
        checkout, "--agent", "LocAgent", "--model", f"replay:{log}", issue=ISSUE
    )
    assert replayed.exit_code == 0, replayed.stderr
    assert replayed.outcome["divergences"] == []
    assert results(replayed) == results(whole)

    [explored] = [e.id for e in whole.events if isinstance(e, CodeExplore)]
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[: explored + 1]))
    (whole.output / "outcome.json").unlink()
    model_endpoint.script(report())
    again = command_line.call("resolve", "--resume", whole.output)
    assert again.exit_code == 0, again.stderr
    done = Ended(again.exit_code, again.stdout, again.stderr, whole.output)
    assert results(done) == results(whole)
    assert len(results(done)) == 2
    assert done.outcome["places"][0]["path"] == "shop/price.py"


@pytest.fixture
def scenario(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> Iterator[Scenario]:
    return Scenario(github, command_line, model_endpoint)


@pytest.mark.nightly
def test_on_github_the_places_are_links_in_one_comment(scenario: Scenario) -> None:
    place = {"path": "calc.py", "start": 2, "end": 2, "symbol": "add", "why": "it *subtracts*"}
    scenario.endpoint.script(
        tool_call("search_code", {"terms": ["add"]}),
        tool_call("report_places", {"message": "add() subtracts.", "places": [place]}),
    )
    event = scenario.github.event_issue_comment(scenario.mention())
    done = scenario.action(event, RESOLVER_AGENT="LocAgent")
    assert done.exit_code == 0, done.stdout + done.stderr
    [comment] = scenario.bot_comments()
    page = f"{scenario.github.server_url}/{REPOSITORY}/blob/{done.outcome['base']}/calc.py#L2"
    assert f"[`calc.py:2`](<{page}>) (add)" in comment
    assert (scenario.branches(), scenario.pulls()) == ([], [])
