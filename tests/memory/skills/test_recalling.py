"""Tests of loading knowledge during a run: derived from the log, once each, bounded."""

from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import Source as By
from resolver.events.log import Event
from resolver.events.state import State
from resolver.memory.skills.library import Library, SkillSource
from resolver.memory.skills.recaller import (
    MAX_FILE_LENGTH,
    MAX_LOADED_LENGTH,
    RecalledText,
    SkillRecaller,
)
from resolver.memory.skills.skill import Origin
from resolver.models.run import Completion
from tests.trace.sample import started

TOOLS = ("execute_bash", "str_replace_editor", "finish")
FILES = {
    "AGENTS.md": "house",
    "web/AGENTS.md": "web",
    "web/app/AGENTS.md": "app",
    "web/app/main.js": "x",
    "src/a.py": "x",
    "src/b.py": "x",
    ".agents/skills/flaky.md": "---\ntriggers: [flaky]\n---\nabout flaky",
    ".agents/skills/python.md": "---\nglobs: src/*.py\n---\nabout python",
    ".agents/skills/asked.md": "---\ntype: task\n---\nthe task",
}


def library(files: Mapping[str, str] = FILES) -> Library:
    contents = {path: text.encode() for path, text in files.items()}
    return Library([SkillSource(Origin.REPOSITORY, tuple(contents), contents.get)])


def opening(
    body: str = "", named: str = "", tools: tuple[str, ...] = TOOLS, instruction: str = ""
) -> list[Event]:
    start = started()
    trigger = start.task.trigger.model_copy(update={"named": named, "instruction": instruction})
    values = {"trigger": trigger, "body": body}
    return [
        start.model_copy(update={"task": start.task.model_copy(update=values)}),
        life.SystemPrompt(content="s", tools=tools),
        a.Message(content="The flaky words of a template, src/a.py", source=By.USER),
    ]  # fmt: skip


def numbered(events: Sequence[Event]) -> list[Event]:
    return [event.model_copy(update={"id": n}) for n, event in enumerate(events)]


def names(loaded: Sequence[RecalledText]) -> list[str]:
    return [result.name for _, result in loaded]


def append_events(events: list[Event], loaded: Sequence[RecalledText], *more: Event) -> list[Event]:
    result = [event for pair in loaded for event in pair]
    reply = life.ModelReplied(completion=Completion(model="m", text="x"))
    return numbered([*events, *result, reply, *more])


def recalled(events: Sequence[Event], recaller: SkillRecaller | None = None) -> list[RecalledText]:
    known = recaller or SkillRecaller(library(), ("/workspace",))
    return list(known.recall(State.fold(events)))


def test_text_of_the_issue_triggers_a_skill_and_templates_do_not() -> None:
    assert names(recalled(numbered(opening("It is flaky.")))) == ["AGENTS.md", "flaky"]
    assert names(recalled(numbered(opening("It breaks.")))) == ["AGENTS.md"]


def test_changed_files_load_skills_and_instructions_of_their_folders() -> None:
    first = numbered(opening())
    loaded = recalled(first)
    for event in (
        a.FileRead(path="web/app/main.js"),
        a.FileRead(path="/workspace/web/app/main.js"),
        o.CmdOutput(exit_code=0, cwd="/workspace/web/app", cause=99),
        a.FileWrite(path="web/app/new.js", content=""),
    ):
        assert names(recalled(append_events(first, loaded, event))) == [
            "web/AGENTS.md",
            "web/app/AGENTS.md",
        ]


CHANGED = o.ChangedPaths(paths=("src/a.py",), count=1, differing=1)


def test_a_skill_is_loaded_for_a_file_that_was_changed_and_not_for_one_that_was_read() -> None:
    first = numbered(opening())
    loaded = recalled(first)
    for event in (
        a.FileEdit(command="insert", path="src/a.py", insert_line=0, new_str="x"),
        a.FileWrite(path="/workspace/src/a.py", content=""),
        o.CmdOutput(changed=CHANGED, cause=99),
        o.IPythonOutput(changed=CHANGED, cause=99),
    ):
        [(action, _)] = recalled(append_events(first, loaded, event))
        assert (action.query, action.why) == ("python", "src/a.py was changed")
    for event in (
        a.FileRead(path="src/a.py"),
        a.CmdRun(command="cat src/a.py && python src/a.py"),
        a.CmdRun(command="sed -i s/x/y/ src/a.py"),
        a.IPythonRunCell(code="open('src/a.py').read()"),
        o.CmdOutput(changed=o.ChangedPaths(), cause=99),
    ):
        assert recalled(append_events(first, loaded, event)) == []
    read_first = append_events(first, loaded, a.FileRead(path="src/a.py"))
    edit = a.FileEdit(command="insert", path="src/a.py", insert_line=0, new_str="x")
    assert names(recalled(numbered([*read_first, edit]))) == ["python"]


def test_a_requested_task_is_presented_as_the_work() -> None:
    [_, (action, result)] = recalled(numbered(opening(named="asked")))
    assert (result.name, result.about, action.why) == ("asked", "task", "asked for as /asked")


def test_loaded_text_is_limited_and_omissions_are_named() -> None:
    skills = {
        f".agents/skills/s{n}.md": f"---\ntriggers: [flaky]\n---\n{'x' * 60_000}" for n in range(9)
    }
    always = {name: name * 20_000 for name in ("AGENTS.md", "CLAUDE.md", ".cursorrules")}
    actual = recalled(numbered(opening("flaky")), SkillRecaller(library(skills | always)))
    assert len(actual) == 12
    sizes = {result.name: len(result.content) for _, result in actual}
    assert max(sizes.values()) <= MAX_FILE_LENGTH + 200, "with the note on what is left out"
    assert sum(sizes.values()) <= MAX_LOADED_LENGTH + 3000
    last = actual[-1][1].content
    assert "no space left" in last and ".agents/skills/s8.md" in last


MORE: list[Event] = [
    a.Message(content="it is flaky", source=By.USER),
    a.FileRead(path="web/app/main.js"),
    a.FileEdit(command="insert", path="src/b.py", insert_line=0, new_str="x"),
    life.ModelReplied(completion=Completion(model="m", text="x")),
    o.Null(),
]


@given(st.lists(st.sampled_from(MORE), max_size=8), st.integers(0, 30), st.booleans())
def test_a_run_interrupted_anywhere_loads_the_same(
    script: list[Event], cut: int, flaky: bool
) -> None:
    recaller = SkillRecaller(library(), ("/workspace",))
    log = opening("flaky" if flaky else "")
    for event in script:
        for pair in recalled(numbered(log), recaller):
            log += pair
        log.append(event)
    log += [event for pair in recalled(numbered(log), recaller) for event in pair]
    whole = numbered(log)
    result = [e.name for e in whole if isinstance(e, o.RecallResult)]
    assert len(set(result)) == len(result)
    assert recalled(whole) == [], "a new process has nothing to add"
    begun = whole[: max(3, cut)]
    resumed = names(recalled(begun))
    assert not set(resumed) & {e.name for e in begun if isinstance(e, o.RecallResult)}
    assert set(resumed) <= {*result, "AGENTS.md"}
