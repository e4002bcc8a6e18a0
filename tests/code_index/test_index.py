"""Tests of the index of a commit and its process: content, limits and termination."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from resolver.code_index.index import (
    MAX_ANSWER_CHARACTERS,
    CodeIndex,
    IndexBounds,
    index_action_handlers,
)
from resolver.code_index.worker import processor_time_past
from resolver.errors import WorkspaceError
from resolver.events import actions as a
from resolver.events.observations import CodeResult
from resolver.git.git import HostGit
from tests.code_index.scenario import REPOSITORIES, Answers, clone_of, commit_of, index_of
from tests.parts.runs import git, make_checkout
from tests.parts.waiting import until

SECRET = "canary-3f9a77c1"
SLOW = {"slow.cpp": "a<" * 200_000}


def test_the_actions_of_an_agent_are_answered_from_the_commit(tmp_path: Path) -> None:
    source, commit = commit_of(tmp_path, REPOSITORIES["python"])
    (tmp_path / "checkout" / "b.py").write_text("def later(): ...\n")
    handlers = index_action_handlers(CodeIndex(source, commit))
    search = handlers[a.CodeSearch](a.CodeSearch(terms=("total", "later")))
    explore = handlers[a.CodeExplore](a.CodeExplore(start=("Cart.pay",), edges=("calls",)))
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
    index = index_of(tmp_path, files, IndexBounds(file_bytes=len(wide)))
    terms = tuple(f"m{n}.py::f" for n in range(8))
    result = index_action_handlers(index)[a.CodeSearch](a.CodeSearch(terms=terms))
    assert isinstance(result, CodeResult) and result.left_out == 1
    assert MAX_ANSWER_CHARACTERS / 2 < len(result.content) < MAX_ANSWER_CHARACTERS + 1_000
    assert "; 1 source file is not, or only partly, in it" in result.content


def test_the_process_has_no_secret_and_no_privileges(tmp_path: Path) -> None:
    environment = {**os.environ, "LLM_API_KEY": SECRET, "GITHUB_TOKEN": SECRET}
    program = (
        "import subprocess, sys; from pathlib import Path\n"
        "from resolver.code_index.index import CodeIndex\n"
        "from resolver.git.git import HostGit\n"
        "wait = subprocess.Popen.wait\n"
        "def inspect(self, timeout=None):\n"
        "    process = Path(f'/proc/{self.pid}')\n"
        "    while self.args[1] == '-I' and self.poll() is None:\n"
        "        if 'Seccomp:\\t2' in (status := (process / 'status').read_text()):\n"
        "            print((process / 'environ').read_bytes(), (process / 'limits').read_text())\n"
        "            print(status, sorted((process / 'fd').iterdir()))\n"
        "            self.kill()\n"
        "            break\n"
        "    return wait(self, timeout)\n"
        "subprocess.Popen.wait = inspect\n"
        "CodeIndex(HostGit(git_dir=Path(sys.argv[1])), sys.argv[2]).build()\n"
    )
    _, commit = commit_of(tmp_path, SLOW)
    command = [sys.executable, "-c", program, str(tmp_path / "bare.git"), commit]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert SECRET not in done.stdout
    assert done.stdout.startswith("b'' ") or "LD_LIBRARY_PATH" in done.stdout.split(" ")[0]
    limits = " ".join(done.stdout.split())
    assert "Max core file size 0 0" in limits and "Max file size 67108864 67108864" in limits
    assert "Max address space 1500000000 1500000000" in limits
    assert "NoNewPrivs:\t1" in done.stdout
    assert "fd/3" not in done.stdout  # two files and nothing


@pytest.fixture(scope="module")
def three_files(tmp_path_factory: pytest.TempPathFactory) -> tuple[HostGit, str]:
    tree = {
        "big.py": "x = 1\n" * 1000,
        "small.py": "def f(): ...\n" * 5,
        "z/z.py": "y = 1234\n",
    }
    return commit_of(tmp_path_factory.mktemp("three"), tree)


@pytest.mark.parametrize(
    ("bounds", "left_out"),
    [
        (IndexBounds(file_bytes=100), 1),
        (IndexBounds(files=1), 2),
        (IndexBounds(total_bytes=20), 2),
        (IndexBounds(file_seconds=-1.0), 3),
        (IndexBounds(timeout_seconds=0.0), 3),
        (IndexBounds(output=100), 2),
        (IndexBounds(facts=4), 2),
    ],
)
def test_files_beyond_a_limit_are_omitted_and_counted(
    three_files: tuple[HostGit, str], bounds: IndexBounds, left_out: int
) -> None:
    index = CodeIndex(*three_files, bounds)
    index.build()
    assert index.left_out == left_out


def test_the_projects_own_sources_are_preferred(tmp_path: Path) -> None:
    files = {"node_modules/x/i.js": "function f() {}\n", "notes.txt": "f\n", "src/i.js": "let a\n"}
    index = index_of(tmp_path, files, IndexBounds(files=1))
    assert "1  let a" in Answers(index.build()).search(["src/i.js"])


def test_a_file_beyond_the_processor_time_is_found_by_its_words(tmp_path: Path) -> None:
    files = SLOW | {"a.py": "def f(): ...\n", "z/z.py": "def z(): ...\n"}
    index = index_of(tmp_path, files, IndexBounds(file_seconds=100.0, seconds=1))
    answers = Answers(index.build())
    assert index.left_out == 2
    assert "function a.py::f" in answers.search(["f"])
    assert "z/z.py:\n     1  def z()" in answers.search(["z/z.py"])


def test_an_interrupted_question_is_an_error_and_the_next_one_is_answered(tmp_path: Path) -> None:
    index = index_of(tmp_path, SLOW, IndexBounds(file_seconds=0.3))

    def interrupt() -> None:
        until(lambda: index._process is not None)
        index.interrupt()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(WorkspaceError, match="interrupted"):
        index.build()
    thread.join()
    assert "slow.cpp" in Answers(index.build()).search(["slow.cpp"])


def test_a_missing_commit_is_reported(tmp_path: Path) -> None:
    source, _ = commit_of(tmp_path, {"a.py": "x = 1\n"})
    with pytest.raises(WorkspaceError, match="ls-tree failed"):
        CodeIndex(source, "1" * 40).build()


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
    index = CodeIndex(*clone_of(tmp_path, checkout))
    answers = Answers(index.build())
    assert index.left_out == 2
    assert "function dir with spaces/ünï.py::fine" in answers.search(["fine"])
    assert "Passages" not in answers.search(["odd", "root:"])


def test_a_path_of_very_many_folders_is_bounded(tmp_path: Path) -> None:
    source, _ = commit_of(tmp_path, {"a.py": "x = 1\n"})
    blob = source.text("hash-object", "-w", "--stdin", stdin=b"def deep(): ...\n")
    tree = source.text("mktree", stdin=f"100644 blob {blob}\ta.py\n".encode())
    for _ in range(100):
        tree = source.text("mktree", stdin=f"040000 tree {tree}\td\n".encode())
    commit = source.text("commit-tree", tree, "-m", "deep")
    answers = Answers(CodeIndex(source, commit).build())
    assert "- function d/" in answers.search(["deep"])
    walk = answers.explore(["d/" * 39 + "d"], ["downstream"], 1, [])
    assert walk.count("contains file") == 1


def test_time_without_the_processor_does_not_count() -> None:
    is_late = processor_time_past(0.2)
    subprocess.run([sys.executable, "-c", "import time; time.sleep(0.5)"], check=True)
    assert not is_late()
