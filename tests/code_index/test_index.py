"""Tests of the index of a commit and its process: content, limits and termination."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from resolver.code_index.index import (
    MAX_ANSWER_CHARACTERS,
    CodeIndex,
    IndexBounds,
    IndexUnavailable,
    index_action_handlers,
)
from resolver.code_index.worker import processor_time_past
from resolver.events import actions as a
from resolver.events.observations import CodeResult, ErrorObservation
from tests.code_index.scenario import REPOSITORIES, Answers, clone_of, commit_of, index_of
from tests.parts.runs import git, make_checkout

SECRET = "canary-3f9a77c1"
SLOW = {"slow.cpp": "a<" * 200_000}
MANY = {f"m{n}.py": "".join(f"def f{n}_{m}(): ...\n" for m in range(20_000)) for n in range(9)}


def process_of(index: CodeIndex) -> int:
    """Return the pid of the index's process, found among this process's children."""
    for folder in Path("/proc").iterdir():
        try:
            words = (folder / "cmdline").read_bytes()
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
        if b"resolver.code_index.worker" in words and parent == os.getpid():
            return int(folder.name)
    raise AssertionError(f"no process for {index}")


def test_the_actions_of_an_agent_are_answered_from_the_commit(tmp_path: Path) -> None:
    source, commit = commit_of(tmp_path, REPOSITORIES["python"])
    (tmp_path / "checkout" / "b.py").write_text("def later(): ...\n")
    with CodeIndex(source, commit) as index:
        handlers = index_action_handlers(index)
        with pytest.raises(AssertionError):
            process_of(index)
        search = handlers[a.CodeSearch](a.CodeSearch(terms=("total", "later")))
        explore = handlers[a.CodeExplore](a.CodeExplore(start=("Cart.pay",), edges=("calls",)))
        number = process_of(index)
    assert not Path(f"/proc/{number}").exists()
    assert isinstance(search, CodeResult) and search.commit == commit
    assert search.content.startswith("## total\n- function src/shop/price.py::total [1-2]")
    assert "## later\nNothing has this name, and" in search.content
    assert f"[index of commit {commit[:12]}, from which" in search.content
    pay = "method src/shop/cart.py::Cart.pay [5-6]"
    assert explore.content.startswith(
        f"{pay}, upstream: nothing\n\n{pay}, downstream\n"
        "  -> calls method src/shop/cart.py::Cart.check [8-9]\n"
        "  -> calls function src/shop/price.py::total [1-2]\n\n[index"
    )


def test_an_answer_is_bounded_and_names_what_is_missing(tmp_path: Path) -> None:
    wide = "def f():\n" + "".join(f"    x{n} = {'y' * 300!r}\n" for n in range(300))
    files = {f"m{n}.py": wide for n in range(8)} | {"big.py": wide * 2}
    with index_of(tmp_path, files, IndexBounds(file_bytes=len(wide))) as index:
        terms = tuple(f"m{n}.py::f" for n in range(8))
        result = index_action_handlers(index)[a.CodeSearch](a.CodeSearch(terms=terms))
    assert isinstance(result, CodeResult) and result.left_out == 1
    assert MAX_ANSWER_CHARACTERS / 2 < len(result.content) < MAX_ANSWER_CHARACTERS + 1_000
    assert "; 1 source file is not, or only partly, in it" in result.content


def test_the_process_has_no_secret_and_no_privileges(tmp_path: Path) -> None:
    environment = {**os.environ, "LLM_API_KEY": SECRET, "GITHUB_TOKEN": SECRET}
    program = (
        "import sys; from pathlib import Path; from resolver.code_index.index import CodeIndex\n"
        "from resolver.git.git import HostGit\n"
        "index = CodeIndex(HostGit(git_dir=Path(sys.argv[1])), sys.argv[2])\n"
        "index.build(); process = Path(f'/proc/{index._process.pid}')\n"
        "print((process / 'environ').read_bytes(), (process / 'limits').read_text())\n"
        "print((process / 'status').read_text(), sorted((process / 'fd').iterdir()))\n"
        "index.close()"
    )
    _, commit = commit_of(tmp_path, {"a.py": "x = 1\n"})
    command = [sys.executable, "-c", program, str(tmp_path / "bare.git"), commit]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert SECRET not in done.stdout
    assert done.stdout.startswith("b'' ") or "LD_LIBRARY_PATH" in done.stdout.split(" ")[0]
    limits = " ".join(done.stdout.split())
    assert "Max core file size 0 0" in limits and "Max file size 0 0" in limits
    assert "Max address space 1500000000 1500000000" in limits
    assert "Seccomp:\t2" in done.stdout and "NoNewPrivs:\t1" in done.stdout
    assert "fd/3" not in done.stdout  # two pipes and nothing


@pytest.mark.parametrize(
    ("bounds", "files", "left_out"),
    [
        (IndexBounds(file_bytes=100), 2, 1),
        (IndexBounds(files=1), 1, 2),
        (IndexBounds(total_bytes=20), 1, 2),
        (IndexBounds(seconds=-1.0), 0, 3),
        (IndexBounds(file_seconds=-1.0), 3, 3),
    ],
)
def test_files_beyond_a_limit_are_omitted_and_counted(
    tmp_path: Path, bounds: IndexBounds, files: int, left_out: int
) -> None:
    tree = {"big.py": "x = 1\n" * 1000, "small.py": "def f(): ...\n", "z/z.py": "y = 1234\n"}
    with index_of(tmp_path, tree, bounds) as index:
        size = index.build()
    assert (size.files, size.left_out) == (files, left_out)


def test_the_projects_own_sources_are_preferred(tmp_path: Path) -> None:
    files = {"node_modules/x/i.js": "function f() {}\n", "notes.txt": "f\n", "src/i.js": "let a\n"}
    with index_of(tmp_path, files, IndexBounds(files=1)) as index:
        assert "1  let a" in Answers(index).search(["src/i.js"])


@pytest.mark.parametrize(
    ("files", "bounds"),
    [
        (SLOW, IndexBounds(file_seconds=100.0, timeout_seconds=1.0)),
        (MANY, IndexBounds(memory=150_000_000)),
    ],
    ids=["time", "memory"],
)
def test_an_index_beyond_its_limits_is_given_up_for_good(
    tmp_path: Path, files: dict[str, str], bounds: IndexBounds
) -> None:
    with index_of(tmp_path, files, bounds) as index:
        search = index_action_handlers(index)[a.CodeSearch]
        results = [search(a.CodeSearch(terms=("y",))) for _ in range(2)]
    assert all(isinstance(result, ErrorObservation) for result in results)
    assert all("time or memory" in result.content for result in results)


def test_a_process_that_was_killed_or_interrupted_gives_no_answer(tmp_path: Path) -> None:
    with index_of(tmp_path, {"a.py": "def f(): ...\n"}) as index:
        assert "a.py::f" in Answers(index).search(["f"])
        os.kill(process_of(index), signal.SIGSEGV)
        with pytest.raises(IndexUnavailable, match="gave no answer"):
            index.search(["f"])
    with index_of(tmp_path / "b", SLOW, IndexBounds(file_seconds=100.0)) as index:
        threading.Timer(1.0, index.interrupt).start()
        with pytest.raises(IndexUnavailable):
            index.search(["f"])


def test_a_missing_commit_is_reported_and_leaves_no_process(tmp_path: Path) -> None:
    source, _ = commit_of(tmp_path, {"a.py": "x = 1\n"})
    with CodeIndex(source, "1" * 40) as index:
        with pytest.raises(Exception, match="ls-tree failed"):
            index.build()
        with pytest.raises(AssertionError):
            process_of(index)


def test_links_submodules_odd_paths_and_binaries_are_not_indexed(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "checkout", {"a.py": "def f(): ...\n"})
    (checkout / "loop").symlink_to("loop")
    (checkout / "above.py").symlink_to("../../../etc/passwd")
    (checkout / "round").symlink_to(".")
    (checkout / "picture.py").write_bytes(b"\x89PNG\r\n\0\0" * 1000)
    Path(os.fsdecode(os.fsencode(checkout) + b"/odd-\xff\xfe.py")).write_text("def odd(): ...\n")
    (checkout / "line\nbreak.py").write_text("def odd(): ...\n")
    (checkout / "dir with spaces").mkdir()
    (checkout / "dir with spaces" / "ünï.py").write_text("def fine(): ...\n")
    git(checkout, "add", "-A")
    git(checkout, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},vendored/sub")
    git(checkout, "commit", "-q", "-m", "Odd things")
    with CodeIndex(*clone_of(tmp_path, checkout)) as index:
        size = index.build()
        assert (size.files, size.left_out, size.submodules) == (2, 2, 1)
        assert "function dir with spaces/ünï.py::fine" in Answers(index).search(["fine"])
        assert "Passages" not in Answers(index).search(["odd", "root:"])


def test_of_very_many_definitions_in_one_file_the_first_are_kept(tmp_path: Path) -> None:
    body = "".join(f"def f{n}():0\n" for n in range(60_000))
    bounds = IndexBounds(file_bytes=4 * 1024 * 1024, file_seconds=20.0)
    with index_of(tmp_path, {"many.py": body}, bounds) as index:
        assert index.build().left_out == 1
        assert "many.py::f49999 [" in Answers(index).search(["f49999"])


def test_a_path_of_very_many_folders_is_bounded(tmp_path: Path) -> None:
    source, _ = commit_of(tmp_path, {"a.py": "x = 1\n"})
    blob = source.text("hash-object", "-w", "--stdin", stdin=b"def deep(): ...\n")
    tree = source.text("mktree", stdin=f"100644 blob {blob}\ta.py\n".encode())
    for _ in range(100):
        tree = source.text("mktree", stdin=f"040000 tree {tree}\td\n".encode())
    commit = source.text("commit-tree", tree, "-m", "deep")
    with CodeIndex(source, commit) as index:
        assert "- function d/" in Answers(index).search(["deep"])
        assert (
            Answers(index).explore(["d/" * 39 + "d"], ["downstream"], 1, []).count("contains file")
            == 1
        )


def test_time_without_the_processor_does_not_count() -> None:
    is_late = processor_time_past(0.2)
    subprocess.run([sys.executable, "-c", "import time; time.sleep(0.5)"], check=True)
    assert not is_late()
