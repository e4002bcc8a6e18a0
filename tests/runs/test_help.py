"""`@agent help` in an Action's job: one comment, and no run."""

from tests.runs.scenario import REPOSITORY, Scenario

NOTES = """---
name: release-notes
description: Writes the release notes of a version.
tools: execute_bash, str_replace_editor
---
Write in the style of `NEWS`.
"""
COUNTER = """---
description: Counts functions.
read_only: true
---
Count them all.
"""
AGENTS = {
    ".agents/agents/notes.md": NOTES,
    ".agents/agents/counter.md": COUNTER,
}


def test_help_says_what_can_be_asked_and_starts_no_run(scenario: Scenario) -> None:
    shout = "---\ndescription: Tells @octo/everyone, see #1 | now, `a|b`.\n---\nDo it.\n"
    task = "---\ndescription: Changes the version.\ntriggers: [/bump]\n---\nBump it.\n"
    word = "---\ndescription: Knows.\ntriggers: [database]\n---\nKnow it.\n"
    files = {
        **AGENTS,
        ".agents/agents/shout.md": shout,
        ".agents/agents/bad.md": "no head",
        ".agents/skills/version/SKILL.md": task,
        ".openhands/microagents/database.md": word,
    }
    scenario.github.commit(REPOSITORY, "main", files, "Bring agents")
    event = scenario.github.event_issue_comment(scenario.mention(text="@agent help"))
    done = [scenario.action(event) for _ in range(2)]
    assert [run.exit_code for run in done] == [0, 0], done[0].stderr
    [comment] = scenario.bot_comments()
    for words in (
        "`@agent please fix this`", "`@agent stop`", "`@agent review`", "Adding the label `agent`",
        "| `/release-notes` | Writes the release notes of a version. |",
        "| `/counter` | Counts functions. |", "| `/ReadOnlyAgent` |", "everyone",
        "| `/version` | Changes the version. |", "| `/bump` |",
    ):  # fmt: skip
        assert words in comment
    assert "`@octo/everyone`" in comment  # nobody is notified
    assert all(line.count(" | ") == 1 for line in comment.splitlines() if "`/shout`" in line)
    assert "`/bad`" not in comment and "`/database`" not in comment
    assert not scenario.work_done()
    assert not (done[0].output / "events.jsonl").exists()
    assert scenario.outputs() == {"state": "help"}
