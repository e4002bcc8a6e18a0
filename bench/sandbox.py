"""The sandbox in a container against the engine's own commands, measured in turns in one run.

    python bench/sandbox.py [--image IMAGE] [--megabytes 100] [--sandboxes 10]

Prints one JSON line a case: medians in milliseconds, and the ratio of ours to the engine's.
The toolbox's volume is filled before anything is measured, as it is once per version.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).parents[1]))

from resolver.events.actions import CmdRun
from resolver.events.observations import CmdOutput
from resolver.git.bundle import unbundle
from resolver.git.workspace import Workspace
from resolver.runtime.base import SandboxSpec
from resolver.runtime.docker import DockerMachine
from resolver.runtime.engine import connect_engine
from resolver.runtime.runtime import Runtime
from resolver.runtime.toolbox import Toolbox
from tests.parts.sandboxes import git_dir_tar

LABEL = "bench-sandbox"
CHANGE_ALL = "printf '%s' $RANDOM | dd of=$f conv=notrunc"
"""Another first byte of the file `$f`: every file is new then, and as large as before."""

COUNT_OLD = "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c '[s]leep 61.7'"


def measure_ms(work: Callable[[], object]) -> float:
    """Milliseconds."""
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def print_row(
    case: str, ours: list[float], engines: list[float] | None = None, **more: object
) -> None:
    row: dict[str, object] = {"case": case, "ours_ms": round(statistics.median(ours), 2)}
    if engines:
        row["engine_ms"] = round(statistics.median(engines), 2)
        row["ratio"] = round(statistics.median(ours) / statistics.median(engines), 3)
    print(json.dumps({**row, "n": len(ours), **more}), flush=True)


def docker(*arguments: str) -> bytes:
    return subprocess.run(["docker", *arguments], check=True, capture_output=True).stdout


class Bench:
    """One run over one image."""

    def __init__(self, image: str) -> None:
        self.image = image
        self.client = connect_engine(os.environ)
        self.toolbox = Toolbox(Path.home() / ".cache" / "resolver")

    def runtime(self) -> Runtime:
        spec = SandboxSpec(image=self.image, run=LABEL, memory="2g")
        return Runtime(DockerMachine(spec, self.toolbox, self.client), 120)

    @contextmanager
    def container(self) -> Iterator[str]:
        """A plain one of the same image, that waits."""
        name = (
            docker("run", "-d", "--network", "none", self.image, "sleep", "3600").decode().strip()
        )
        try:
            yield name
        finally:
            docker("rm", "-f", name)


def run(sandbox: Runtime, command: str, timeout: float = 60) -> CmdOutput:
    result = sandbox.execute(CmdRun(command=command, timeout=timeout))
    assert isinstance(result, CmdOutput), result
    return result


def ready(bench: Bench, folder: Path, times: int = 9) -> None:
    """Container up, server answering, repository in; against `docker run --rm IMAGE true`."""
    tar, commit = git_dir_tar(folder / "small", {f"f{n}.py": b"x = 1\n" * 50 for n in range(50)})
    ours, bare, parts = [], [], []
    for _ in range(times):
        bare.append(
            measure_ms(lambda: docker("run", "--rm", "--network", "none", bench.image, "true"))
        )
        started = time.perf_counter()
        with bench.runtime() as sandbox:
            start_ms = (time.perf_counter() - started) * 1000
            sandbox.checkout(tar, commit, "main")
            ours.append((time.perf_counter() - started) * 1000)
            parts.append(start_ms)
    print_row("ready", ours, bare, without_repository_ms=round(statistics.median(parts), 1))


def commands(bench: Bench) -> None:
    """`true`, outputs, `exit 3`, a timeout; against `docker exec`."""
    with bench.runtime() as sandbox, bench.container() as other:
        run(sandbox, "true")
        ours = [measure_ms(lambda: run(sandbox, "true")) for _ in range(200)]
        engines = [measure_ms(lambda: docker("exec", other, "true")) for _ in range(15)]
        print_row("true", ours, engines, p95_ms=round(sorted(ours)[189], 2))
        for megabytes in (1, 10):
            command = f"seq -f '%09.0f' 1 {megabytes * 100_000}"
            ours, engines = [], []
            for _ in range(7):
                ours.append(measure_ms(partial(run, sandbox, command)))
                engines.append(measure_ms(partial(docker, "exec", other, "sh", "-c", command)))
            result = run(sandbox, command)
            bytes_on_disk = run(sandbox, f"wc -c < {result.output_file}").content.strip()
            print_row(
                f"{megabytes} MB",
                ours,
                engines,
                bytes_on_disk=int(bytes_on_disk),
                omitted=result.omitted,
            )
        exit_times, next_times = [], []
        for _ in range(9):
            run(sandbox, "cd /usr; export KEPT=yes")
            exit_times.append(measure_ms(lambda: run(sandbox, "exit 3")))
            next_times.append(measure_ms(lambda: run(sandbox, "echo $KEPT $PWD")))
        assert run(sandbox, "echo $KEPT $PWD").content == "yes /usr\n"
        print_row("exit 3", exit_times, next_command_ms=round(statistics.median(next_times), 2))
        after = []
        for _ in range(5):
            result = run(sandbox, "echo begun; sleep 61.7", 1)
            assert result.timed_out and result.content.startswith("begun")
            after.append(measure_ms(lambda: run(sandbox, "echo usable")))
        remaining = run(sandbox, COUNT_OLD).content
        print_row("next command after a timeout", after, old_processes_left=int(remaining))


def transfers(bench: Bench, folder: Path, megabytes: int, times: int = 5) -> None:
    """A repository in and a change out; against `docker cp` of the same files."""
    contents: dict[str, Callable[[int], bytes]] = {
        "random bytes": lambda _: os.urandom(1_000_000),
        "source code": lambda number: source_code(number, 1_000_000),
        "source code in files of 20 kB": lambda number: source_code(number, 20_000),
    }
    for kind, content in contents.items():
        count = megabytes * 1_000_000 // len(content(0))
        files = {f"data/{number}.py": content(number) for number in range(count)}
        place = folder / kind.replace(" ", "-")
        git_dir_tar(place / "source", files)
        _transfer(bench, place, f"{megabytes} MB, {kind}:", times)


def source_code(number: int, size: int) -> bytes:
    """A module of so many bytes, like no other."""
    lines = (
        f"def compute_{number}_{n}(first, second):\n"
        f"    return first + second * {number * 7919 + n * 104729}  # step {n}\n"
        for n in range(size // 60)
    )
    return "".join(lines).encode()[:size]


def _transfer(bench: Bench, place: Path, case: str, times: int) -> None:
    workspace = Workspace.clone(str(place / "source"), place / "clone")
    base, data = workspace.base, str(place / "source" / "data")
    times_of: dict[str, list[float]] = {name: [] for name in ("in", "out", "cp in", "cp out")}
    parts, checks, sizes = [], [], []
    for round_number in range(times):
        with bench.runtime() as sandbox, bench.container() as other:
            target, bundle = place / f"out{round_number}", place / f"{round_number}.bundle"
            copy_in, copy_out = [data, f"{other}:/data"], [f"{other}:/data", str(target)]
            times_of["cp in"].append(measure_ms(partial(docker, "cp", *copy_in)))
            times_of["cp out"].append(measure_ms(partial(docker, "cp", *copy_out)))
            times_of["in"].append(
                measure_ms(lambda: sandbox.checkout(workspace.git_dir_tar, base, "main"))
            )
            run(sandbox, f"sleep 2; for f in data/*; do {CHANGE_ALL}; done 2>&-")
            started = time.perf_counter()
            change = sandbox.export_change(base)
            parts.append((time.perf_counter() - started) * 1000)
            sandbox.fetch(str(change["bundle"]), bundle, 10**10)
            times_of["out"].append((time.perf_counter() - started) * 1000)
            fresh = Workspace.clone(str(place / "source"), place / f"clone{round_number}")
            started = time.perf_counter()
            unbundle(fresh.git, bundle, base, change["commit"], change["tree"])
            checks.append((time.perf_counter() - started) * 1000)
            sizes.append(change["size"] / 1e6)
            shutil.rmtree(target)
            shutil.rmtree(fresh.folder)
            bundle.unlink()
    print_row(f"{case} repository in", times_of["in"], times_of["cp in"])
    print_row(
        f"{case} change out", times_of["out"], times_of["cp out"],
        made_in_the_sandbox_ms=round(statistics.median(parts), 1),
        megabytes=round(statistics.median(sizes), 1),
        checked_on_the_host_ms=round(statistics.median(checks), 1),
    )  # fmt: skip


def many(bench: Bench, count: int) -> None:
    """So many sandboxes at once: when each was ready, and what each takes while it idles."""
    with ExitStack() as open_ones:
        begun = time.perf_counter()

        def start(_: int) -> tuple[Runtime, float]:
            sandbox = bench.runtime().__enter__()
            open_ones.push(sandbox)
            run(sandbox, "true")
            return sandbox, (time.perf_counter() - begun) * 1000

        with ThreadPoolExecutor(count) as pool:
            started = list(pool.map(start, range(count)))
        times = sorted(duration for _, duration in started)
        megabytes = []
        for container in bench.client.containers.list(filters={"label": f"resolver.run={LABEL}"}):
            used = cast(dict[str, Any], container.stats(stream=False))["memory_stats"]
            parts = used.get("stats", {})
            own_memory = parts.get("rss", parts.get("anon", used.get("usage", 0)))
            megabytes.append(round(own_memory / 1e6, 1))
        print_row(
            f"{count} sandboxes at once", times, first_ms=round(times[0]), last_ms=round(times[-1]),
            idle_megabytes_each=statistics.median(megabytes),
        )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--image", default="resolver-test/python:latest")
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--sandboxes", type=int, default=10)
    parser.add_argument("--only", choices=("ready", "commands", "transfers", "many"))
    arguments = parser.parse_args()
    bench = Bench(arguments.image)
    with bench.runtime():
        pass
    with tempfile.TemporaryDirectory() as name:
        parts: dict[str, Callable[[], None]] = {
            "ready": lambda: ready(bench, Path(name)),
            "commands": lambda: commands(bench),
            "transfers": lambda: transfers(bench, Path(name), arguments.megabytes),
            "many": lambda: many(bench, arguments.sandboxes),
        }
        for measurement, measure in parts.items():
            if arguments.only in (None, measurement):
                measure()


if __name__ == "__main__":
    main()
