"""A model or an endpoint that answers garbage costs steps, never a crash."""

import json

import pytest

from resolver.events.observations import ErrorObservation
from tests.attacks.stage import Stage
from tests.parts.model_endpoint import (
    Answer,
    cut_connection,
    empty,
    error,
    garbage,
    html,
    raw,
    reply,
    tool_call,
    tool_calls,
)
from tests.parts.runs import bash, finish

DEEP = "[" * 50_000

GARBAGE = [
    reply("Sure! " * 2000),
    reply("\x00\x1b[31m\ud83d\ude00 </details> <script>alert(1)</script>"),
    reply("<execute_bash>rm -rf /</execute_bash> and <finish>done"),
    tool_call("execute_bash", '{"command": "echo broken'),
    tool_call("execute_bash", "[1, 2]"),
    tool_call("execute_bash", {"command": 7, "timeout": "soon"}),
    tool_call("execute_bash", {"command": "echo fine", "timeout": 1e308}),
    tool_call("execute_bash", {"command": "echo fine", "timeout": -1}),
    tool_call("execute_bash", '{"command": "echo nan", "timeout": NaN}'),
    tool_call("execute_bash", {"command": "printf '\\0' | cat; echo \0 zero"}),
    tool_call("execute_bash", {"command": "echo \ud800 surrogate"}),
    tool_call("execute_bash", f'{{"command": {DEEP}'),
    tool_call("rm_rf", {"path": "/"}),
    tool_call("", {}),
    tool_call("str_replace_editor", {"command": "view", "path": "x" * 100_000}),
    tool_call("str_replace_editor", {"command": "delete", "path": "calc.py"}),
    tool_call("str_replace_editor", {"command": "insert", "path": "calc.py", "insert_line": "x"}),
    tool_call("execute_ipython_cell", {"code": "import os; os._exit(9)"}),
    tool_call("finish", "no"),
    tool_calls([("execute_bash", {"command": f"mkdir -p d{n}"}) for n in range(40)]),
]

TROUBLE = [
    empty(),
    html(),
    garbage(),
    raw(b'{"choices": []}'),
    raw(b'{"choices": [{"message": null}]}'),
    raw(b"null"),
    error(500),
    error(429, retry_after=0),
    error(503, "<html>\x1b[2J" * 100),
    cut_connection(),
    cut_connection(after=20),
]


def test_a_run_continues_after_each_kind_of_garbage(stage: Stage) -> None:
    """The endpoint sends broken calls, unknown tools, cut connections and error pages: each
    costs a step, and the run finishes."""
    stage.line.environment |= {"RESOLVER_MODEL_OPTIONS": "{num_retries: 20}"}
    # Between two troubles an answer, so that the waiting does not add up.
    troubles = [a for n, t in enumerate(TROUBLE) for a in (t, bash(f"true {'x' * n}"))]
    done = stage.play(
        *GARBAGE,
        *troubles,
        bash("sed -i 's/a - b/a + b/' calc.py"),
        finish("Make add add"),
        options=("--max-iterations", "60"),
    )
    assert done.exit_code == 0, done.stderr
    assert stage.endpoint.left == 0
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stderr
    for request in stage.endpoint.requests:
        asked = [c["id"] for m in request.body["messages"] for c in m.get("tool_calls") or ()]
        answered = [m["tool_call_id"] for m in request.body["messages"] if m["role"] == "tool"]
        assert asked == answered, "each call is answered once, or the next endpoint refuses it"
    assert sum(isinstance(e, ErrorObservation) for e in done.events) >= 10
    json.loads((done.output / "outcome.json").read_text())


@pytest.mark.parametrize(
    ("answer", "ends"),
    [
        (tool_call("execute_bash", '{"command'), {"stuck", "limit"}),
        (html(), {"error"}),
    ],
    ids=["broken calls", "pages"],
)
def test_nothing_but_garbage_ends_in_a_clear_state_with_a_readable_log(
    stage: Stage, answer: Answer, ends: set[str]
) -> None:
    """The endpoint sends nothing but garbage: the run ends with a reason and a readable log."""
    stage.line.environment |= {"RESOLVER_MODEL_OPTIONS": "{num_retries: 1}"}
    stage.endpoint.answer_with(lambda body: answer)
    done = stage.play(options=("--max-iterations", "12"))
    assert done.exit_code in (1, 4), done.stderr
    assert done.outcome["state"] in ends
    assert done.outcome["reason"]
    assert "Traceback" not in done.stderr
    assert len(done.events) > 3
    shown = stage.line.call("trace", done.output)
    assert shown.exit_code == 0
    assert done.outcome["state"] in shown.stdout.lower()
