"""The agent that finds places, from an issue to its answer, and as a delegate.

Whole runs, because the index is of the clone on the host, and the answers are in the log.
"""

from pathlib import Path

from resolver.events.observations import CodeResult
from tests.parts.model_endpoint import Answer, ModelEndpoint, tool_call
from tests.parts.runs import CommandLine, Ended, git, make_checkout

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
    done = command_line.call_resolve(checkout, "--agent", "LocAgent", issue=ISSUE)
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
