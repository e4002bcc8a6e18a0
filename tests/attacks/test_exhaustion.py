"""The sixth invariant: a run is bounded, whatever the agent wastes, and ends with its log."""

from resolver.events.observations import CmdOutput
from tests.attacks.stage import Stage, everywhere
from tests.parts.runs import Ended, bash, finish

LARGEST_LOG = 2_000_000
"""Bytes that the event log of a handful of commands may have."""


def commands(done: Ended) -> list[CmdOutput]:
    return [event for event in done.events if isinstance(event, CmdOutput)]


@everywhere
def test_output_without_end_is_cut_and_the_run_continues(stage: Stage) -> None:
    """Commands print without end, kill their shell or stop it: the output is cut, and the run
    continues."""
    done = stage.run(
        bash("head -c 20000000 /dev/zero | tr '\\0' x", timeout=100),
        bash("yes 'endless output'", timeout=3),
        bash("head -c 3000000 /dev/urandom", timeout=30),
        bash("while :; do printf '\\r%s' \"$RANDOM\"; done", timeout=2),
        bash("cat", timeout=2),
        bash("sleep 1000 & disown; exec 1>&-; exit 3"),
        bash("kill -9 $$"),
        bash("kill -STOP $$", timeout=3),
        bash("sed -i 's/a - b/a + b/' calc.py; grep -c . calc.py"),
        finish("Make add add"),
    )
    assert done.exit_code == 0, done.stderr
    large, endless, binary, *_, last = commands(done)
    assert large.omitted > 19_000_000
    assert large.content.startswith("xxx") and large.content.endswith("xxx")
    assert endless.timed_out and endless.exit_code is None
    assert binary.omitted > 0
    assert (last.content.split()[0], last.exit_code) == ("2", 0)
    assert (done.output / "events.jsonl").stat().st_size < LARGEST_LOG
    assert all(request_size < LARGEST_LOG for request_size in map(len, map(str, bodies(stage))))
    assert list(stage.temporary.iterdir()) == []


def bodies(stage: Stage) -> list[dict[str, object]]:
    return [request.body for request in stage.endpoint.requests]


def test_time_is_bounded_by_the_runs_own_limit(stage: Stage) -> None:
    """Commands that each stay below their timeout add up: the run ends at its time limit."""
    stage.endpoint.answer_with(lambda body: bash(f"sleep 1.5 # {len(body['messages'])}"))
    done = stage.play(options=("--max-time", "6"))
    assert done.exit_code == 4, done.stderr
    assert (done.outcome["state"], done.outcome["limit"]) == ("limit", "time")
