"""A log like that of a real run, and hostile texts, for the tests of all renderers."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import EventBase, Source
from resolver.models.run import (
    Actor,
    Completion,
    RunLimits,
    RunState,
    Task,
    Tokens,
    Trigger,
    TriggerKind,
)

START = datetime(2026, 3, 4, 9, 30, tzinfo=UTC)

HOSTILE = (
    "</details></summary></pre></code><script>alert(1)</script>",
    '<img src=x onerror="fetch(\'https://evil.example/\')"><iframe src="https://evil.example">',
    "<svg onload=alert(1)><style>*{display:none}</style>",
    "![x](https://evil.example/?d=1) [link](javascript:alert(1)) <https://evil.example>",
    "```\n</details>\n```\n\n````\n# heading\n````\n" + "`" * 50 + "\n" + "~" * 50,
    "   ```\n> ```\n- ```\n    ```\n~~~\n  ~~~",
    "@everyone @octocat @org/team fixes #12, GH-12, octo/repo#3 https://github.com/o/r/issues/1",
    "\x1b[31mred\x1b[0m "
    "\x1b]8;;https://evil.example\x07link\x1b]8;;\x07 \x07\x9b31m\u202eevil\u2066",
    "::add-mask::x\n  ::error::boom\n##[group]fake\ntext ##[endgroup]\r::stop-commands::t",
    "[bold red]markup[/bold red] [/] [link=https://evil.example]x[/link] :smile:",
    "<!-- entries -->\n</details>\n<details>\n\n<!-- open",
    "&lt;b&gt; &#64;octocat &colon;",
    "| a | b |\n|---|---|\n$$x$$ $`y`$ [^1]\n\n[^1]: note\n===\n---\n1. x\n1) y\n+ z",
)


def reply(text: str, cost: float | None = 0.0041) -> life.ModelReplied:
    return life.ModelReplied(
        completion=Completion(
            model="claude-sonnet-4-5",
            text=text,
            tokens=Tokens(input=9_184, output=212, cached=8_730),
            cost=cost,
            latency=3.1,
        )
    )


def started(
    title: str = "parse_date crashes on two-digit years", **changes: str
) -> life.RunStarted:
    task = Task(
        trigger=Trigger(
            key="delivery-1",
            kind=TriggerKind.ISSUE_COMMENT,
            repository=changes.get("repository", "octo-org/calendar"),
            number=482,
            actor=Actor(login=changes.get("login", "maria-k"), id=7),
            instruction=changes.get("instruction", "please fix this, and keep 4-digit years as is"),
            at=START,
        ),
        title=title,
        body="`parse_date('04/03/26')` raises ValueError since 2.1.",
        author="maria-k",
        url="https://github.com/octo-org/calendar/issues/482",
        left_out=("A comment by @drive-by, written after the request.",),
        base_branch="main",
        source="https://github.com/octo-org/calendar.git",
    )
    return life.RunStarted(
        run="run-0193",
        version="0.1.0",
        task=task,
        base="8c1f0b52d3a94e0f8f0b6a1c5f1f7c2b9e3d4a55",
        agent="CodeActAgent",
        model=changes.get("model", "anthropic/claude-sonnet-4-5"),
        runtime="docker",
        limits=RunLimits(),
    )


def numbered(events: Iterable[EventBase], step: float = 2.0) -> list[EventBase]:
    """Number and date the events like a stream; an executable action is followed by its answer."""
    log: list[EventBase] = []
    last_reply: int | None = None
    for i, event in enumerate(events):
        update: dict[str, object] = {"id": i, "timestamp": START + timedelta(seconds=i * step)}
        if isinstance(event, life.ModelReplied):
            last_reply = i
        elif "reply" in type(event).model_fields and event.source is Source.AGENT:
            update["reply"] = last_reply
        elif type(event).__module__.endswith("observations") and not isinstance(
            event, o.AgentStateChanged
        ):
            update["cause"] = i - 1
        log.append(event.model_copy(update=update))
    return log


FAILURE = """\
>       assert parse_date("04/03/26") == date(2026, 3, 4)
E       ValueError: time data '04/03/26' does not match format '%d/%m/%Y'

calendar/parse.py:12: ValueError
========================= 1 failed, 13 passed in 0.21s =========================
"""

DIFF = """\
--- a/calendar/parse.py
+++ b/calendar/parse.py
@@ -8,5 +8,7 @@
 def parse_date(text: str) -> date:
     \"\"\"The date written as day/month/year.\"\"\"
     day, month, year = text.split("/")
-    return datetime.strptime(f"{day}/{month}/{year}", "%d/%m/%Y").date()
+    # Two digits mean the years 1969 to 2068, as POSIX has it.
+    form = "%d/%m/%y" if len(year) == 2 else "%d/%m/%Y"
+    return datetime.strptime(text, form).date()
"""

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9"
    "awAAAABJRU5ErkJggg=="
)


def realistic() -> list[EventBase]:
    return numbered(
        [
            started(),
            life.StageCompleted(stage="cloned", detail="octo-org/calendar at 8c1f0b5", seconds=0.8),
            life.StageCompleted(stage="sandbox", detail="docker, no network", seconds=0.4),
            life.SystemPrompt(content="You resolve issues.\n" * 30, tools=("execute_bash",)),
            a.Message(source=Source.USER, content="Issue 482: parse_date crashes\n\nBody…"),
            o.AgentStateChanged(state=RunState.RUNNING),
            reply("Let me look at the code first."),
            a.CmdRun(
                command="git log --oneline | head -3 && ls",
                thought="I'll look around: what the project is, and how its tests are run.",
            ),
            o.CmdOutput(
                content="8c1f0b5 Release 2.1\n1d0e77a Tidy parsing\nREADME.md\ncalendar\ntests\n",
                exit_code=0,
                seconds=0.03,
            ),
            reply("Now reproduce."),
            a.CmdRun(
                command="python -m pytest -q tests/test_parse.py",
                thought=(
                    "The issue says that two-digit years fail since 2.1. Before I change anything "
                    "I want to see it fail:\n- run the existing tests\n- then read `parse_date`"
                ),
            ),
            o.CmdOutput(content=FAILURE, exit_code=1, seconds=1.34),
            reply("Read the function."),
            a.FileRead(path="/workspace/calendar/parse.py", view_range=(1, 14)),
            o.FileReadResult(
                path="/workspace/calendar/parse.py",
                content="     1\tfrom datetime import date, datetime\n     2\t\n"
                "     8\tdef parse_date(text):",
            ),
            life.ModelRetried(attempt=1, wait=2.0, reason="429 Too Many Requests"),
            reply("Edit."),
            a.FileEdit(
                command="str_replace",
                path="/workspace/calendar/parse.py",
                old_str="a",
                new_str="b",
                thought="`%Y` wants four digits. The smallest change: choose the form by length.",
            ),
            o.FileEditResult(path="/workspace/calendar/parse.py", diff=DIFF, content="edited"),
            reply("garbage", cost=None),
            a.Invalid(reason="The reply had no action. Answer with one tool call."),
            o.ErrorObservation(content="The reply had no action. Answer with one tool call."),
            reply("Check with Python and the whole suite."),
            a.IPythonRunCell(
                code="from calendar_.parse import parse_date\n"
                "for t in ('04/03/26', '04/03/2026'):\n"
                "    print(t, parse_date(t))",
                thought="",
            ),
            o.IPythonOutput(content="04/03/26 2026-03-04\n04/03/2026 2026-03-04", images=(PIXEL,)),
            life.Warned(about="limit", message="80% of the budget is used."),
            reply("Whole suite."),
            a.CmdRun(
                command="python -m pytest -q 2>&1 \\\n  | tail -40",
                thought="Both forms work. Now everything else.",
            ),
            o.CmdOutput(
                content="\n".join(f"tests/test_{i}.py ......  [{i}%]" for i in range(100))
                + "\n214 passed in 6.20s\n",
                exit_code=0,
                seconds=6.6,
            ),
            reply("Done."),
            a.Finish(
                message="`parse_date` accepts two-digit years again. Four-digit years are "
                "unchanged.\n\nThe failing test passes, and so do the other 213.",
            ),
            o.AgentStateChanged(state=RunState.FINISHED, reason="the agent finished"),
            life.StageCompleted(stage="change", detail="1 file, +3 -1", seconds=0.2),
        ]
    )


def hostile(text: str) -> list[EventBase]:
    """Put `text` everywhere that people or models outside can write to."""
    return numbered(
        [
            started(title=text, repository=text, login=text, instruction=text, model=text),
            life.StageCompleted(stage=text, detail=text),
            life.SystemPrompt(content=text),
            a.Message(source=Source.USER, content=text),
            life.ModelReplied(completion=Completion(model=text, text=text, reasoning=text)),
            a.CmdRun(command=text, thought=text),
            o.CmdOutput(content=text, exit_code=1, cwd=text),
            a.IPythonRunCell(code=text),
            o.IPythonOutput(content=text, images=(text, f"data:image/svg+xml,{text}")),
            a.FileEdit(command="str_replace", path=text, old_str=text, new_str=text),
            o.FileEditResult(path=text, diff=text),
            a.FileWrite(path=text, content=text),
            o.ErrorObservation(content=text, code=text),
            a.McpCall(server=text, name=text, arguments={text: [text]}),
            o.McpResult(content=text, structured={text: text}),
            a.Delegate(agent=text, task=text),
            o.DelegateResult(content=text),
            a.Think(content=text),
            a.Invalid(reason=text),
            life.Warned(about=text, message=text),
            life.ModelRetried(attempt=1, wait=1, reason=text),
            life.Condensation(forgotten=(1,), summary=text),
            life.ReplayDiverged(recorded_id=1, field=text, recorded=text, found=text),
            o.ErrorObservation(content=text),
            a.Finish(message=text),
            a.Reject(reason=text),
            o.AgentStateChanged(state=RunState.ERROR, reason=text),
        ]
    )
