"""Runs the benchmarks one after the other and writes what they print to RESULTS.md.

    python bench/run_all.py [--quick] [--only steps,sandbox]

Each benchmark is a script of this folder that prints a table of its own, with the sides that it
compares side by side. --quick takes small settings and few minutes; it writes to standard output
only.
"""

import argparse
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.peers.environments import peer_python
from resolver.config.version import PACKAGE, version_text

ROOT = Path(__file__).parents[1]
LIMIT_SECONDS = 3600
PEERS = ("openhands", "mini", "rex")

BENCHMARKS: dict[str, tuple[str, str, str]] = {
    "whole_run": (
        "A whole run of the Action, from the event to the end of the process",
        "--files 100,1000,10000 --megabytes 10,100 --comments 10,100,1000 --steps 10,100,500 "
        "--parallel 2,4",
        "--files 1000 --megabytes 10 --comments 100 --steps 50 --parallel 2",
    ),
    "steps": (
        "A step besides the model and the tool, ms at step N",
        "--peer-python openhands={openhands} --peer-python mini={mini}",
        "--steps 50 200 --long 500",
    ),
    "sandbox": (
        "Sandbox in a container",
        "",
        "--megabytes 10 --sandboxes 2 --only ready",
    ),
    "torture_compare": ("Hard commands in one shell session", "--rex {rex}", ""),
    "verifying": ("What the verification of a change adds", "--suite 60", "--suite 6"),
    "deliveries": ("Webhook deliveries under load", "200 20", "50 2"),
    "burst": ("A burst of deliveries while the server is killed", "5000", "500"),
}
"""For each script its title, and its arguments in full and quickly.

`{NAME}` is the Python of that peer's environment. If it can't be installed, the argument and the
option before it are left out.
"""


def arguments_of(line: str, pythons: dict[str, str]) -> list[str]:
    """Return the arguments of a script, without those of peers that are not installed."""
    arguments: list[str] = []
    for argument in line.split():
        missing = [name for name in PEERS if f"{{{name}}}" in argument and not pythons.get(name)]
        if missing:
            arguments.pop()  # the option
        else:
            arguments.append(argument.format(**pythons) if "{" in argument else argument)
    return arguments


def run_benchmark(name: str, arguments: list[str]) -> str:
    """Return what the script prints, or the end of its error output if it fails."""
    command = [sys.executable, f"bench/{name}.py", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_SECONDS,
    )
    if done.returncode:
        return f"Failed with exit code {done.returncode}: {done.stderr.strip()[-500:]}"
    return done.stdout.strip()


def as_markdown(text: str) -> str:
    """Return tables as they are, and other output as a block of code."""
    return text if text.startswith("|") else f"```\n{text}\n```"


def conditions() -> str:
    """Return what the figures depend on besides the code, as a sentence."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("litellm", "pydantic", "fastapi"))
    return (
        f"Measured on {datetime.now(UTC):%Y-%m-%d} with {version_text(PACKAGE)}: "
        f"{os.cpu_count()} cores, Linux {platform.release()}, Python {platform.python_version()}, "
        f"{packages}. "
        f"Load at the beginning: {os.getloadavg()[0]:.1f}."
    )


def main() -> int:
    """Run the benchmarks that were asked for. Return 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", help="names of benchmarks, separated by commas")
    options = parser.parse_args()
    chosen = options.only.split(",") if options.only else list(BENCHMARKS)
    if unknown := set(chosen) - set(BENCHMARKS):
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}")
    sections = [
        "# Results of the benchmarks\n",
        "Written by `make bench`. [README.md](README.md) explains what is measured and how.\n",
        conditions(),
    ]
    failed = False
    lines = {name: BENCHMARKS[name][2 if options.quick else 1] for name in chosen}
    used = [name for name in PEERS if any(f"{{{name}}}" in line for line in lines.values())]
    pythons = {name: peer_python(name) for name in used}
    for name in chosen:
        printed = run_benchmark(name, arguments_of(lines[name], pythons))
        failed = failed or printed.startswith("Failed")
        section = f"\n## {name}\n\n{BENCHMARKS[name][0]}.\n\n{as_markdown(printed)}"
        print(section, flush=True)
        sections.append(section)
    if not (options.quick or options.only):
        (Path(__file__).parent / "RESULTS.md").write_text("\n".join(sections) + "\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
