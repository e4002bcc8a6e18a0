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
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from resolver.events.actions import CmdRun
from resolver.events.observations import CmdOutput
from resolver.runtime.base import SandboxSpec
from resolver.runtime.docker import DockerMachine
from resolver.runtime.engine import connect_engine
from resolver.runtime.runtime import Runtime
from resolver.runtime.toolbox import Toolbox
from tests.parts.sandboxes import git_dir_tar

LABEL = "bench-sandbox"
COUNT_OLD = "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c '[s]leep 61.7'"


def clocked(work: Callable[[], object]) -> float:
    """Milliseconds."""
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1000


def say(case: str, ours: list[float], engines: list[float] | None = None, **more: object) -> None:
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
    found = sandbox.execute(CmdRun(command=command, timeout=timeout))
    assert isinstance(found, CmdOutput), found
    return found


def ready(bench: Bench, folder: Path, times: int = 9) -> None:
    """Container up, server answering, repository in; against `docker run --rm IMAGE true`."""
    tar, commit = git_dir_tar(folder / "small", {f"f{n}.py": b"x = 1\n" * 50 for n in range(50)})
    packed = b"".join(tar)
    ours, bare, parts = [], [], []
    for _ in range(times):
        bare.append(
            clocked(lambda: docker("run", "--rm", "--network", "none", bench.image, "true"))
        )
        begun = time.perf_counter()
        with bench.runtime() as sandbox:
            up = (time.perf_counter() - begun) * 1000
            sandbox.checkout(iter([packed]), commit, "main")
            ours.append((time.perf_counter() - begun) * 1000)
            parts.append(up)
    say("ready", ours, bare, without_repository_ms=round(statistics.median(parts), 1))


def commands(bench: Bench) -> None:
    """`true`, outputs, `exit 3`, a timeout; against `docker exec`."""
    with bench.runtime() as sandbox, bench.container() as other:
        run(sandbox, "true")
        ours = [clocked(lambda: run(sandbox, "true")) for _ in range(200)]
        engines = [clocked(lambda: docker("exec", other, "true")) for _ in range(15)]
        say("true", ours, engines, p95_ms=round(sorted(ours)[189], 2))
        for megabytes in (1, 10):
            command = f"seq -f '%09.0f' 1 {megabytes * 100_000}"
            ours, engines = [], []
            for _ in range(7):
                ours.append(clocked(lambda asked=command: run(sandbox, asked)))
                engines.append(
                    clocked(lambda asked=command: docker("exec", other, "sh", "-c", asked))
                )
            found = run(sandbox, command)
            kept = run(sandbox, f"wc -c < {found.output_file}").content.strip()
            say(f"{megabytes} MB", ours, engines, bytes_on_disk=int(kept), omitted=found.omitted)
        exits, nexts = [], []
        for _ in range(9):
            run(sandbox, "cd /usr; export KEPT=yes")
            exits.append(clocked(lambda: run(sandbox, "exit 3")))
            nexts.append(clocked(lambda: run(sandbox, "echo $KEPT $PWD")))
        assert run(sandbox, "echo $KEPT $PWD").content == "yes /usr\n"
        say("exit 3", exits, next_command_ms=round(statistics.median(nexts), 2))
        after = []
        for _ in range(5):
            found = run(sandbox, "echo begun; sleep 61.7", 1)
            assert found.timed_out and found.content.startswith("begun")
            after.append(clocked(lambda: run(sandbox, "echo usable")))
        left = run(sandbox, COUNT_OLD).content
        say("next command after a timeout", after, old_processes_left=int(left))


def transfers(bench: Bench, folder: Path, megabytes: int, times: int = 3) -> None:
    """A repository in and a change out; against `docker cp` of the same files."""
    files = {f"data/{n}.bin": os.urandom(1_000_000) for n in range(megabytes)}
    _, commit = git_dir_tar(folder / "large", files)
    git = ["git", "-C", str(folder / "large")]
    subprocess.run([*git, "repack", "-adq"], check=True)  # as a clone has it
    packed = folder / "large.tar"
    subprocess.run(["tar", "-C", folder / "large" / ".git", "-cf", packed, "."], check=True)
    ours_in, ours_out, engines_in, engines_out, parts = [], [], [], [], []
    for turn in range(times):
        with bench.runtime() as sandbox, bench.container() as other:
            source, target = folder / "large" / "data", folder / f"out{turn}"
            go_in, go_out = [str(source), f"{other}:/data"], [f"{other}:/data", str(target)]
            engines_in.append(clocked(lambda given=go_in: docker("cp", *given)))
            engines_out.append(clocked(lambda given=go_out: docker("cp", *given)))
            ours_in.append(clocked(lambda: sandbox.checkout(_chunks(packed), commit, "main")))
            # As many new bytes again: every file has another first byte.
            run(
                sandbox,
                "for f in data/*; do printf '%s' $RANDOM | dd of=$f conv=notrunc; done 2>&-",
            )
            begun = time.perf_counter()
            change = sandbox.export_change(commit)
            made = (time.perf_counter() - begun) * 1000
            sandbox.fetch(str(change["bundle"]), folder / f"b{turn}.bundle", 10**10)
            ours_out.append((time.perf_counter() - begun) * 1000)
            parts.append(made)
            shutil.rmtree(target)
    say(f"{megabytes} MB repository in", ours_in, engines_in)
    made = round(statistics.median(parts), 1)
    say(f"{megabytes} MB change out", ours_out, engines_out, git_in_the_sandbox_ms=made)


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            yield chunk


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
        took = sorted(when for _, when in started)
        megabytes = []
        for container in bench.client.containers.list(filters={"label": f"resolver.run={LABEL}"}):
            used = container.stats(stream=False)["memory_stats"]
            parts = used.get("stats", {})
            own = parts.get("rss", parts.get("anon", used.get("usage", 0)))
            megabytes.append(round(own / 1e6, 1))
        say(
            f"{count} sandboxes at once", took, first_ms=round(took[0]), last_ms=round(took[-1]),
            idle_megabytes_each=statistics.median(megabytes),
        )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--image", default="resolver-test/python:latest")
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--sandboxes", type=int, default=10)
    parser.add_argument("--only", choices=("ready", "commands", "transfers", "many"))
    given = parser.parse_args()
    bench = Bench(given.image)
    with bench.runtime():
        pass
    with tempfile.TemporaryDirectory() as name:
        parts: dict[str, Callable[[], None]] = {
            "ready": lambda: ready(bench, Path(name)),
            "commands": lambda: commands(bench),
            "transfers": lambda: transfers(bench, Path(name), given.megabytes),
            "many": lambda: many(bench, given.sandboxes),
        }
        for part, measure in parts.items():
            if given.only in (None, part):
                measure()


if __name__ == "__main__":
    main()
