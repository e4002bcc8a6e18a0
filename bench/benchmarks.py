"""The list of benchmarks: how each is run, in full and quickly, its goals, and its peers."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Pair:
    """A peer's figures: `ours` in a figure's name is `theirs` in the name of the peer's figure."""

    peer: str
    ours: str
    theirs: str


@dataclass(frozen=True)
class Benchmark:
    """A script in this folder whose output has figures.

    full, quick: arguments. `{openhands}` in one is the Python of that peer's environment; if that
    can't be installed, the argument and the option before it are left out.
    rounds: how many times it is run in full; `quick_rounds` times with --quick, not at all if 0.
    keys: columns that name a row, besides the first one (see figures.py).
    goals: largest value that a figure should have, by the figure's name.
    exact: ends of the names of figures that don't depend on the machine: counts and bytes.
    higher: ends of the names of figures that should be high.
    """

    name: str
    title: str
    script: str = ""
    full: tuple[str, ...] = ()
    quick: tuple[str, ...] = ()
    rounds: int = 3
    quick_rounds: int = 2
    keys: tuple[str, ...] = ()
    pairs: tuple[Pair, ...] = ()
    goals: Mapping[str, float] = field(default_factory=dict)
    exact: tuple[str, ...] = ()
    higher: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """Name of the script."""
        return self.script or f"{self.name}.py"


OPENHANDS = "openhands-sdk 1.58.0"
MINI = "mini-swe-agent 2.4.6"
REX = "SWE-ReX 1.4.0"
PLAYWRIGHT = "Playwright 1.65.2"

BENCHMARKS = (
    Benchmark(
        "whole_run",
        "A whole run of the Action, from the event to the end of the process",
        full=("--files", "100,1000,10000,100000", "--megabytes", "10,100,1000",
              "--comments", "10,100,1000", "--steps", "10,100,500", "--parallel", "2,4"),
        quick=("--files", "1000", "--megabytes", "10", "--comments", "100", "--steps", "50",
               "--parallel", "2"),
        rounds=1,  # of five minutes
        quick_rounds=1,
        keys=("scenario",),
    ),
    Benchmark(
        "starting",
        "Start and end of a run on a checkout",
        full=("--rounds", "3"),
        quick=("--rounds", "2"),
        quick_rounds=1,
        goals={
            "first model request after `import litellm`, s: median": 0.5,
            "end after the last line, s: median": 0.2,
            "memory of the run, MB: median": 220,
        },
    ),
    Benchmark(
        "server_runs",
        "Start and end of the runs of a server, and its memory",
        full=("--runs", "10"),
        quick=("--runs", "3"),
        rounds=2,
        quick_rounds=1,
        keys=("server",),
        goals={
            f"{server}: {figure}": goal
            for server in ("serve, SQLite", "worker, PostgreSQL")
            for figure, goal in {
                "first model request after the start, s": 0.5,
                "end after the final comment, s": 0.2,
            }.items()
        },
    ),
    Benchmark(
        "events",
        "Event log: durable append, open",
        full=("--peer-python", "{openhands}"),
        quick=("--sizes", "1000", "--rounds", "1", "--peer-python", "{openhands}"),
        keys=("what",),
        pairs=(Pair(OPENHANDS, ": ours", ": openhands-sdk"),),
    ),
    Benchmark(
        "steps",
        "A step besides the model and the tool, ms at step N",
        full=("--peer-python", "openhands={openhands}", "--peer-python", "mini={mini}"),
        quick=("--steps", "50", "200", "--long", "500", "--peer-python", "openhands={openhands}",
               "--peer-python", "mini={mini}"),
        pairs=(Pair(OPENHANDS, "resolver,", "openhands,"), Pair(MINI, "resolver,", "mini,")),
        goals={"resolver, cpu: 50": 2.0, "resolver, cpu: 1,000": 2.0},
    ),
    Benchmark(
        "model_call",
        "Our side of a model call",
        quick=("10", "500"),
        full=("10", "500", "2000"),
        keys=("messages",),
        pairs=(Pair("httpx", ": resolver_ms", ": httpx_ms"),),
    ),
    Benchmark(
        "router",
        "A model call with a fallback to another model",
        quick=("10",),
        full=("10", "100"),
        keys=("messages",),
        pairs=(Pair("litellm.Router", ": resolver_", ": router_"),),
    ),
    Benchmark(
        "sandbox",
        "Sandbox in a container",
        quick=("--megabytes", "10", "--sandboxes", "2", "--only", "ready"),
        rounds=1,  # of nine minutes, in which nearly everything is measured five times or more
        quick_rounds=1,
        keys=("case",),
        pairs=(Pair("docker", ": ours_ms", ": engine_ms"),),
    ),
    Benchmark(
        "changed_paths",
        "Report of changed files, ms",
        quick=("1000",),
        quick_rounds=1,
    ),
    Benchmark(
        "browser",
        "Browser in the sandbox",
        full=("--peer-python", "{playwright}"),
        quick=("--rounds", "1", "--actions", "5", "--peer-python", "{playwright}"),
        rounds=1,
        quick_rounds=1,
        pairs=(Pair(PLAYWRIGHT, ": ours", ": playwright"),),
    ),
    Benchmark(
        "torture_compare",
        "Hard commands in one shell session",
        full=("--rex", "{rex}"),
        rounds=1,
        quick_rounds=0,
        higher=(": ours",),
        pairs=(Pair(REX, ": ours", ": SWE-ReX"),),
    ),
    Benchmark(
        "fetching",
        "Bytes that a clone takes",
        full=("click", "pytest"),
        quick=("click",),
        rounds=1,
        quick_rounds=1,
        exact=("MB", "requests", "commits", "ours / depth 1"),
        goals={"click: ours / depth 1": 1.5, "pytest: ours / depth 1": 1.5},
    ),
    Benchmark(
        "verifying",
        "What the verification of a change adds",
        full=("--rounds", "2"),
        rounds=1,
        quick_rounds=0,
    ),
    Benchmark(
        "evaluation",
        "Overhead of a task of `resolver eval`",
        full=("--tasks", "50"),
        quick=("--tasks", "6"),
        rounds=1,
        quick_rounds=1,
        higher=("resolved",),
    ),
    Benchmark(
        "deliveries",
        "Webhook deliveries under load",
        full=("200", "60", "10000"),
        quick=("50", "2", "100"),
        rounds=1,
        quick_rounds=1,
        keys=("server",),
        pairs=(
            Pair("FastAPI", "resolver, PostgreSQL:", "FastAPI + psycopg:"),
            Pair("FastAPI", "resolver, PostgreSQL, runs in workers:", "FastAPI + psycopg:"),
            Pair("FastAPI", "resolver, SQLite:", "FastAPI + sqlite3:"),
        ),
    ),
    Benchmark(
        "viewers",
        "Live pages with many viewers, while deliveries arrive",
        full=("--postgresql", "--rate", "200", "--seconds", "20"),
        quick=("--viewers", "50", "--rate", "10", "--seconds", "3", "--runs", "2"),
        rounds=1,
        quick_rounds=1,
        keys=("what",),
        higher=("accepted", "updates_least"),
        pairs=(
            Pair("FastAPI", "deliveries with viewers:", "bare FastAPI with viewers:"),
            Pair("FastAPI", "deliveries without viewers:", "bare FastAPI without viewers:"),
        ),
    ),
    Benchmark(
        "rendering",
        "Trace of a long event log",
        full=("10000",),
        quick=("1000",),
        keys=("events",),
    ),
    Benchmark(
        "locating",
        "Index of a repository",
        full=("500", "2000"),
        quick=("100",),
        rounds=1,
        quick_rounds=1,
    ),
    Benchmark("prefix", "Unchanged start of the prompts", full=(), quick=("--steps", "30")),
    Benchmark(
        "condensers",
        "Condensers over long runs, tokens",
        quick=("--steps", "100", "--condensers", "importance"),
        rounds=1,
        quick_rounds=1,
        keys=("condenser", "steps"),
        exact=("tokens",),
    ),
    Benchmark(
        "risk",
        "Rules for risky commands",
        rounds=1,
        quick_rounds=1,
        keys=("half",),
        exact=(": high", ": medium", ": low"),
    ),
    Benchmark(
        "stuck_false_alarms",
        "Stuck detector",
        quick=("--seeds", "2"),
        rounds=1,
        quick_rounds=1,
        exact=("steps", "found in"),
    ),
)  # fmt: skip
