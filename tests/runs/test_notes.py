"""Notes for later runs that are proposed in the pull request.

`test_proposed_notes.py` has how they are written into the file or stored, `test_knowledge.py` and
`tests/memory/skills` how a later run gets them.
"""

from pathlib import Path

from tests.parts.model_endpoint import Answer, ModelEndpoint, tool_calls
from tests.parts.runs import MODEL_KEY, CommandLine, finish, git, make_checkout
from tests.runs.test_github import FILES, FIX, SUMMARY

FIRST = "Its tests are run by `make check`, which takes a minute."
SECOND = "test_sums fails on a full disk."


def note(*notes: str) -> Answer:
    """The model makes notes."""
    return tool_calls([("remember", {"note": text}) for text in notes])


def test_notes_are_proposed_as_a_part_of_the_change_without_secrets(
    command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    """A whole run, because the file with the notes has to pass export, policy and commit, and
    all that it leaves is searched for the key of its model."""
    checkout = make_checkout(tmp_path / "calc", {**FILES, "AGENTS.md": "# House\n\nUse tabs."})
    secret = "The key is ghp_0123456789abcdefghijklmnopqrstuvwxyzAB."
    model_endpoint.script(
        note(FIRST, f"The key is {MODEL_KEY}."), FIX, note(SECOND, secret, FIRST), finish(SUMMARY)
    )
    command_line.environment["RESOLVER_NOTES"] = "propose"
    done = command_line.call_resolve(checkout)
    assert done.exit_code == 0, done.stdout + done.stderr
    offered = model_endpoint.requests[-1].body["tools"]
    assert "remember" in [tool["function"]["name"] for tool in offered]
    branch = done.outcome["branch"]
    whole = git(checkout, "show", f"{branch}:AGENTS.md")
    assert whole.startswith("# House\n\nUse tabs.\n\n## Notes from earlier runs\n")
    assert whole.count(FIRST) == 1 and f"- {FIRST}\n- {SECOND}\n<!-- end" in whole
    result = (done.output / "pull_request.md").read_text()
    assert "AGENTS.md" in result and SECOND in result and "written by the model" in result
    assert git(checkout, "rev-parse", f"{branch}^{{tree}}") == done.outcome["tree"]
    for text in (whole, result):
        assert MODEL_KEY not in text and "ghp_0123" not in text and "The key is" not in text
