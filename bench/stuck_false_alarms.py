"""How often the stuck detector cries wolf on long normal runs, and whether it finds each loop.

    python bench/stuck_false_alarms.py [--seeds 20] [LOG ...]

Normal runs are generated from a seed, of several kinds and lengths; LOGs are recorded runs. The
detector looks after every event, as the controller lets it. A loop is planted after 60 normal
steps. An alarm is a first warning to the agent; what is warned about is not stopped yet.
"""

import argparse
import random
import time
from collections.abc import Callable, Iterator
from itertools import chain, count
from pathlib import Path

from resolver.controller.stuck import StuckDetector
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.base import ActionBase, EventBase, ObservationBase, Source
from resolver.events.lifecycle import Condensation
from resolver.events.log import read_log
from resolver.events.state import State

Steps = Iterator[tuple[EventBase, ...]]
WORDS = ("parser", "cache", "router", "session", "model", "schema", "render", "queue", "token")
DEMO = Path(__file__).parent.parent / "resolver" / "demo"


def ran(command: str, output: str = "", code: int = 0) -> tuple[EventBase, ...]:
    return a.CmdRun(command=command), o.CmdOutput(content=output, exit_code=code)


def edit_and_test(chance: random.Random) -> Steps:
    """The same failing test after each edit, with a look at the state in between."""
    for number in count():
        path = f"src/{chance.choice(WORDS)}.py"
        old, new = f"old_{chance.randrange(10**6)}", f"new_{chance.randrange(10**6)}"
        edit = a.FileEdit(command="str_replace", path=path, old_str=old, new_str=new)
        yield edit, o.FileEditResult(path=path, diff=f"-{old}\n+{new}")
        if chance.random() < 0.5:
            yield ran("git status --short", f" M {path}")
        seconds = chance.randrange(10, 99)
        yield ran("pytest -q tests", f"FAILED test_{path}\n1 failed in 0.{seconds}s", 1)
        if chance.random() < 0.2:
            yield ran("pytest -q tests", f"FAILED test_{path}\n1 failed in 0.{seconds + 1}s", 1)
        if chance.random() < 0.3:
            yield a.Think(content=f"the {chance.choice(WORDS)} again, attempt {number}"), o.Null()


def read_in_ranges(chance: random.Random) -> Steps:
    """Large files, view after view; some hold data rather than code."""
    for _ in count():
        path = f"src/{chance.choice(WORDS)}_{chance.randrange(10**4)}.txt"
        is_data = chance.random() < 0.2
        for start in range(1, chance.randrange(200, 1000), 40):
            end = start + 39
            lines = (
                f"{line}\t{chance.randrange(10**5)}"
                if is_data
                else f"{line}\tdef {chance.choice(WORDS)}_{chance.choice(WORDS)}():"
                for line in range(start, end + 1)
            )
            text = "\n".join(lines)
            if chance.random() < 0.5:
                view = a.FileRead(path=path, view_range=(start, end))
                yield view, o.FileReadResult(path=path, content=text)
            else:
                yield ran(f"sed -n '{start},{end}p' {path}", text)


def grep_sweeps(chance: random.Random) -> Steps:
    """One word after the other looked for; many of them are not there."""
    for _ in count():
        word = f"{chance.choice(WORDS)}_{chance.choice(WORDS)}{chance.choice(['', 's', '_id'])}"
        hits = [f"src/{chance.choice(WORDS)}.py:{chance.randrange(500)}" for _ in range(3)]
        matches = chance.random() < 0.4
        yield ran(f"grep -rn {word} src", "\n".join(hits) if matches else "", 0 if matches else 1)


def long_waits(chance: random.Random) -> Steps:
    """Builds in the background, polled; a program that runs on, looked at."""
    for number in count():
        yield ran(f"make part-{number}", "", 0)
        for _ in range(chance.randrange(2, 8)):
            kind = chance.randrange(3)
            if kind == 0:
                still = o.CmdOutput(content="", exit_code=None)
                yield a.CmdRun(command="", is_input=True), still
            elif kind == 1:
                yield ran("sleep 30; tail -n 1 build.log", "linking the world")
            else:
                yield ran("tail -n 1 build.log", f"[{chance.randrange(100)}%] part {number}")


def migrations(chance: random.Random) -> Steps:
    """Files and commands by number, one like the other."""
    for number in count(1):
        path = f"migrations/{number:04}_auto.py"
        yield (
            a.FileWrite(path=path, content=f"number = {number}\n"),
            o.FileWriteResult(path=path, new_hash=f"{chance.getrandbits(256):064x}"),
        )
        yield ran(f"./manage.py migrate app {number:04}", f"Applying app.{number:04}_auto... OK")
        if chance.random() < 0.3:
            yield ran(f"git add {path} && git commit -qm {number:04}", "")


def mixed(chance: random.Random) -> Steps:
    """Some of each, a stretch at a time."""
    patterns = [
        pattern(chance) for pattern in (edit_and_test, read_in_ranges, grep_sweeps, long_waits)
    ]
    while True:
        pattern = chance.choice(patterns)
        for _ in range(chance.randrange(3, 25)):
            yield next(pattern)


NORMAL: tuple[Callable[[random.Random], Steps], ...] = (
    edit_and_test,
    read_in_ranges,
    grep_sweeps,
    long_waits,
    migrations,
    mixed,
)


def loops(chance: random.Random) -> dict[str, Steps]:
    """One endless loop of each pattern."""
    view, missing = a.FileRead(path="x.py"), o.ErrorObservation(content="no such file")
    say = a.Message(content="Shall I go on?", wait_for_response=True)
    continue_command = a.Message(content="Go on.", source=Source.USER, cause=0)
    temporary = (ran(f"cat /tmp/tmp{chance.getrandbits(40):x}/log", "empty", 1) for _ in count())
    noise = (
        ran(
            "pytest -q",
            f"1 failed in {chance.random():.2f}s at 0x{chance.getrandbits(40):x}, commit "
            f"a1{chance.getrandbits(40):010x}, 2026-01-{n % 28 + 1:02} 10:{n % 60:02}:00",
            1,
        )
        for n in count()
    )
    return {
        "same action, same result": (ran("ls", "a") for _ in count()),
        "same action, errors": ((view, missing) for _ in count()),
        "monologue": ((say, continue_command) for _ in count()),
        "two in turn": (ran(*(("ls", "a") if n % 2 else ("pwd", "b"))) for n in count()),
        "three in turn": (ran(w, w) for _ in count() for w in ("ls", "pwd", "id")),
        "condensation": ((a.CondensationRequest(), Condensation(forgotten=(n,))) for n in count()),
        "temporary paths": temporary,
        "times, hashes, addresses": noise,
        "numbers, failing": (ran(f"curl :{3000 + n}", f"refused: {3000 + n}", 7) for n in count()),
        "numbers, same result": (ran(f"head -n {n} log", "x") for n in count()),
        "numbers, succeeding": (ran(f"echo {n}", f"{n}") for n in count()),
        "endless waiting": (ran("sleep 60", "") for _ in count()),
    }


def alarms(steps: Steps, length: int) -> tuple[int, int | None, float]:
    """Warnings within `length` steps, the step of the first, and microseconds a step."""
    detector, state = StuckDetector(), State()
    warned, first, spent = 0, None, 0.0
    for number, step in zip(range(length), steps, strict=False):
        cause = -1
        for event in step:
            id = len(state.events)
            update: dict[str, object] = {"id": id}
            if isinstance(event, ObservationBase):
                update["cause"] = cause
            elif isinstance(event, ActionBase) and event.source is Source.AGENT:
                cause = id
            state.apply(event.model_copy(update=update))  # type: ignore[arg-type]
        started = time.perf_counter()
        verdict = detector.find_repetition(state)
        spent += time.perf_counter() - started
        if verdict:
            warned += 1
            first = number if first is None else first
            detector, state = StuckDetector(), State()
    return warned, first, 1e6 * spent / max(1, length)


def recorded(path: Path) -> int:
    """Warnings on a recorded run."""
    detector, state, warned = StuckDetector(), State(), 0
    for event in read_log(path):
        state.apply(event)
        warned += detector.find_repetition(state) is not None
    return warned


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("logs", nargs="*", type=Path, default=sorted(DEMO.glob("*.jsonl")))
    parser.add_argument("--seeds", type=int, default=20)
    arguments = parser.parse_args()
    lengths = (200, 500, 1000)
    print(
        "| normal run | " + " | ".join(f"{length:,} steps" for length in lengths) + " | µs a step |"
    )
    print("|---|" + "--:|" * (len(lengths) + 1))
    for kind in NORMAL:
        results = [
            [alarms(kind(random.Random(seed)), length) for seed in range(arguments.seeds)]
            for length in lengths
        ]
        cells = [
            f"{sum(result[0] for result in runs)} in {arguments.seeds} runs" for runs in results
        ]
        cost = sum(result[2] for result in results[-1]) / arguments.seeds
        print(f"| {kind.__name__} | " + " | ".join(cells) + f" | {cost:.0f} |")
    for path in arguments.logs:
        print(f"| {path.name} (recorded) | {recorded(path)} | | | |")
    print("\n| planted loop | found in | first warning after, at most |")
    print("|---|--:|--:|")
    for name in loops(random.Random(0)):
        found = []
        for seed in range(arguments.seeds):
            chance = random.Random(seed)
            before = (step for step, _ in zip(mixed(chance), range(60), strict=False))
            clean, _, _ = alarms(before, 60)
            before = (step for step, _ in zip(mixed(random.Random(seed)), range(60), strict=False))
            _, first, _ = alarms(chain(before, loops(chance)[name]), 120)
            assert not clean
            found += [] if first is None else [first - 59]
        print(f"| {name} | {len(found)} of {arguments.seeds} | {max(found, default=0)} steps |")


if __name__ == "__main__":
    main()
