"""Notes for later runs: proposed in the pull request or kept by the program, and always loaded.

Whole runs, because notes go from the agent through change, policy and pull request to the next run.
"""

import json
from pathlib import Path

import pytest

from resolver.events.observations import RecallResult
from resolver.memory.skills.recaller import NOTES
from tests.parts.model_endpoint import Answer, ModelEndpoint, tool_call, tool_calls
from tests.parts.runs import MODEL_KEY, CommandLine, Ended, finish, git, make_checkout
from tests.runs.test_github import FILES, FIX, SUMMARY

FIRST = "Its tests are run by `make check`, which takes a minute."
SECOND = "test_sums fails on a full disk."


def note(*notes: str) -> Answer:
    """The model makes notes."""
    return tool_calls([("remember", {"note": text}) for text in notes])


class Place:
    """A checkout whose runs keep their state in a folder of the test's own."""

    def __init__(self, line: CommandLine, endpoint: ModelEndpoint, folder: Path) -> None:
        self.line, self.endpoint, self.folder = line, endpoint, folder
        self.checkout = folder / "calc"
        line.environment["XDG_STATE_HOME"] = str(folder / "state")

    def begin(self, **files: str) -> None:
        make_checkout(
            self.checkout, {**FILES, **{k.replace("_", "."): v for k, v in files.items()}}
        )

    def resolve(self, memory: str, *script: Answer) -> Ended:
        self.endpoint.script(*script)
        self.line.environment["RESOLVER_NOTES"] = memory
        done = self.line.call_resolve(self.checkout)
        assert done.exit_code == 0, done.stdout + done.stderr
        return done

    def published(self, done: Ended, path: str) -> str:
        return git(self.checkout, "show", f"{done.outcome['branch']}:{path}")

    def pull_request_text(self, done: Ended) -> str:
        return (done.output / "pull_request.md").read_text()


@pytest.fixture
def place(command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path) -> Place:
    return Place(command_line, model_endpoint, tmp_path)


def tools(place: Place) -> list[str]:
    return [t["function"]["name"] for t in place.endpoint.requests[-1].body["tools"]]


def test_notes_are_proposed_as_a_part_of_the_change(place: Place) -> None:
    """A whole run, because the file with the notes has to pass export, policy and commit."""
    place.begin(AGENTS_md="# House\n\nUse tabs.")
    done = place.resolve("propose", note(FIRST), FIX, note(SECOND, FIRST), finish(SUMMARY))
    assert "remember" in tools(place)
    whole = place.published(done, "AGENTS.md")
    assert whole.startswith("# House\n\nUse tabs.\n\n## Notes from earlier runs\n")
    assert whole.count(FIRST) == 1 and f"- {FIRST}\n- {SECOND}\n<!-- end" in whole
    result = place.pull_request_text(done)
    assert "AGENTS.md" in result and SECOND in result and "written by the model" in result
    assert (
        git(place.checkout, "rev-parse", f"{done.outcome['branch']}^{{tree}}")
        == (done.outcome["tree"])
    )


def test_later_runs_get_kept_notes_labeled_as_notes(place: Place) -> None:
    """Whole runs, because a note of the first has to reach the model of the second."""
    place.begin()
    first = place.resolve("store", note(FIRST), FIX, finish(SUMMARY))
    assert FIRST in place.pull_request_text(first) and len(first.outcome["files"]) == 1
    git(place.checkout, "merge", "-q", first.outcome["branch"])
    later = place.resolve(
        "store", tool_call("execute_bash", {"command": "rm README.md"}), finish("Take it out")
    )
    [kept] = [e for e in later.events if isinstance(e, RecallResult) and e.name == NOTES]
    assert (kept.about, kept.sources) == ("notes", (f"run {first.outcome['run']}",))
    prompt = json.dumps(place.endpoint.requests[-1].body["messages"])
    assert "Nobody has checked them" in prompt and FIRST in prompt
    assert FIRST not in place.pull_request_text(later)
    remove = tool_call("execute_bash", {"command": "rm calc.py"})
    off = place.resolve("off", note(SECOND), remove, finish("Out"))
    assert FIRST not in json.dumps(place.endpoint.requests[-1].body["messages"]), "switched off"
    assert "remember" not in tools(place)
    assert SECOND not in place.pull_request_text(off)
    assert [f["path"] for f in off.outcome["files"]] == ["calc.py"]


def test_a_note_never_holds_a_secret(place: Place) -> None:
    """A whole run, because all that it leaves is searched for the key of its model."""
    place.begin()
    secret = "The key is ghp_0123456789abcdefghijklmnopqrstuvwxyzAB."
    done = place.resolve(
        "store", note(f"The key is {MODEL_KEY}.", secret, FIRST), FIX, finish(SUMMARY)
    )
    kept = "".join(p.read_text() for p in (place.folder / "state").rglob("*.json"))
    assert FIRST in kept
    for text in (kept, place.pull_request_text(done)):
        assert MODEL_KEY not in text and "ghp_0123" not in text and "The key is" not in text
