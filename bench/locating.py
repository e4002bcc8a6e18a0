"""How long the index of a repository takes, and questions to it: the sources of this environment's
site-packages, committed as one repository.

    python bench/locating.py [FILES...]
"""

import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from resolver.code_index.index import CodeIndex
from resolver.git.git import HostGit


def main() -> None:
    counts = [int(count) for count in sys.argv[1:]] or [500, 1000, 2000, 4000]
    print(
        "| files | MB | nodes | left out | index, s | processor, s | ms a file "
        "| by name, ms | by words, ms | walk, ms | memory, MB |"
    )
    print("|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    site = Path(sysconfig.get_paths()["purelib"])
    # every n-th, so that the mix is the same at each size
    every = sorted(site.rglob("*.py"))
    for count in counts:
        print(measure(site, every[:: max(1, len(every) // count)][:count]), flush=True)


def measure(site: Path, files: list[Path]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        tree = commit(Path(folder), site, files)
        with CodeIndex(HostGit(git_dir=Path(folder)), tree) as index:
            size, built = timed(lambda: index.build())
            found, named = timed(lambda: index.search(["validate"]))
            _, worded = timed(lambda: index.search(["parse the timeout of a request header"]))
            start = found[0].definitions[0].id
            _, walked = timed(lambda: index.explore([start], ["upstream"], 3, []))
            process = index._process
            assert process is not None
            status = Path(f"/proc/{process.pid}/status").read_text()
            ticks = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    memory = int(status.split("VmHWM:")[1].split()[0]) / 1024
    processor = (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")
    megabytes = sum(f.stat().st_size for f in files) / 1e6
    return (
        f"| {len(files):,} | {megabytes:.1f} | {size.entities:,} | {size.left_out} | {built:.1f} "
        f"| {processor:.1f} | {processor / len(files) * 1000:.1f} "
        f"| {named * 1000:.0f} | {worded * 1000:.0f} | {walked * 1000:.0f} | {memory:.0f} |"
    )


T = TypeVar("T")


def timed(ask: Callable[[], T]) -> tuple[T, float]:
    start = time.monotonic()
    return ask(), time.monotonic() - start


def commit(folder: Path, site: Path, files: list[Path]) -> str:
    git = ("git", "-C", str(site), f"--git-dir={folder}", f"--work-tree={site}")
    subprocess.run(["git", "init", "--quiet", "--bare", str(folder)], check=True)
    names = "\0".join(str(f.relative_to(site)) for f in files).encode()
    add = [*git, "add", "-f", "--pathspec-from-file=-", "--pathspec-file-nul"]
    subprocess.run(add, input=names, check=True)
    tree = subprocess.run([*git, "write-tree"], check=True, capture_output=True, text=True)
    return tree.stdout.strip()


if __name__ == "__main__":
    main()
