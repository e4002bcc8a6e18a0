"""Tests of the index of a commit and its process: content, exclusions and termination."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from resolver.code_index.index import CodeIndex, IndexBounds, IndexUnavailable
from tests.code_index.scenario import REPOSITORIES, clone_of, commit_of, index_of
from tests.parts.runs import git, make_checkout

SECRET = "canary-3f9a77c1"


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


def test_definitions_passages_and_code_are_found(tmp_path: Path) -> None:
    with index_of(tmp_path, REPOSITORIES["python"]) as index:
        named, code, outline, line, words = index.search(
            ["total", "src/shop/cart.py::Cart.pay", "src/shop/cart.py", "src/shop/cart.py:9", "zz"]
        )
    assert (named.how, named.definitions[0].id) == ("named", "src/shop/price.py::total")
    assert named.definitions[0].line == "def total(x):"
    assert {p.path for p in named.passages} == {"src/shop/cart.py", "src/shop/price.py"}
    assert code.code is not None and code.code.lines[0] == "    def pay(self):"
    assert (code.code.start, len(code.code.lines)) == (5, 2)
    assert [d.id.rpartition("::")[2] for d in outline.definitions] == [
        "Cart", "Cart.pay", "Cart.check", "Base",
    ]  # fmt: skip
    assert line.code is not None and line.code.within == "src/shop/cart.py::Cart.check"
    assert (words.how, words.definitions, words.passages) == ("words", (), ())


def test_words_are_found_at_their_positions(tmp_path: Path) -> None:
    filler = "x = 1\n" * 100
    files = {"a.py": filler + "# the retryBudget of a shipment\n" + filler, "b.py": filler}
    with index_of(tmp_path, files) as index:
        [found] = index.search(["retry budget"])
    [passage] = found.passages
    assert passage.path == "a.py"
    assert passage.lines[101 - passage.start] == "# the retryBudget of a shipment"


def test_text_files_are_found_by_their_words(tmp_path: Path) -> None:
    files = {"docs/use.md": "# Flurbing\n\nFlurb it.\n", "a.py": "x = 1\n"}
    with index_of(tmp_path, files) as index:
        [found] = index.search(["flurbing"])
    assert [p.path for p in found.passages] == ["docs/use.md"]


def test_a_similar_name_is_found(tmp_path: Path) -> None:
    with index_of(tmp_path, REPOSITORIES["python"]) as index:
        found = index.search(["totl", "CART.PAY", "src/shop/cart.py::pay"])
        nothing = index.search(["nothing_like_it"])
    names = [[d.id.rpartition("::")[2] for d in match.definitions] for match in found]
    assert names == [["total"], ["Cart.pay"], ["Cart.pay"]]
    assert nothing[0].definitions == ()


def test_results_can_be_restricted_to_a_path(tmp_path: Path) -> None:
    files = {"src/a.py": "def f(): ...\n", "tests/a.py": "def f(): ...\n"}
    with index_of(tmp_path, files) as index:
        [found] = index.search(["f"], "tests/")
    assert [d.path for d in found.definitions] == ["tests/a.py"]


def test_sandbox_paths_and_folders_are_accepted(tmp_path: Path) -> None:
    with index_of(tmp_path, REPOSITORIES["python"]) as index:
        line, code, folder, none = index.search(
            [
                "/workspace/src/shop/cart.py:9",
                "/w/src/shop/cart.py::Base",
                "src/shop",
                "/etc/passwd",
            ]
        )
        [below] = index.search(["total"], "/workspace/src/shop")
        [beside] = index.search(["total"], "src/sh")
    assert line.code is not None and line.code.within == "src/shop/cart.py::Cart.check"
    assert code.code is not None and code.code.start == 12
    assert [d.id for d in folder.definitions] == ["src/shop/cart.py", "src/shop/price.py"]
    assert none.how == "words"
    assert (below.how, beside.how) == ("named", "words")


def test_a_walk_from_a_name_goes_both_ways(tmp_path: Path) -> None:
    with index_of(tmp_path, REPOSITORIES["python"]) as index:
        up, down = index.explore(["pay"], ["upstream", "downstream"], 2, ["contains", "calls"])
        [lost] = index.explore(["cart.py::nope"], ["upstream"], 1, [])
    assert up.node is not None and up.node.id == "src/shop/cart.py::Cart.pay"
    assert [row.node.id for row in up.rows] == ["src/shop/cart.py::Cart", "src/shop/cart.py"]
    assert "src/shop/price.py::total" in {row.node.id for row in down.rows}
    assert lost.node is None


def test_what_is_not_in_the_commit_is_not_in_the_index(tmp_path: Path) -> None:
    source, commit = commit_of(tmp_path, {"a.py": "def f(): ...\n"})
    (tmp_path / "checkout" / "b.py").write_text("def g(): ...\n")
    with CodeIndex(source, commit) as index:
        assert index.build().files == 1
        assert index.search(["g"])[0].how == "words"


def test_the_index_is_built_at_the_first_query(tmp_path: Path) -> None:
    with index_of(tmp_path, {"a.py": "x = 1\n"}) as index, pytest.raises(AssertionError):
        process_of(index)


def test_closing_the_index_ends_its_process(tmp_path: Path) -> None:
    with index_of(tmp_path, {"a.py": "x = 1\n"}) as index:
        index.build()
        number = process_of(index)
    assert not Path(f"/proc/{number}").exists()


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
    assert "fd/4" not in done.stdout  # two pipes, nothing, its own size


def test_files_beyond_a_limit_are_omitted_and_counted(tmp_path: Path) -> None:
    files = {"big.py": "x = 1\n" * 1000, "small.py": "def f(): ...\n", "z.py": "y = 1\n"}
    with index_of(tmp_path, files, IndexBounds(file_bytes=100, files=1)) as index:
        size = index.build()
        assert (size.files, size.left_out) == (1, 2)
    with index_of(tmp_path / "late", files, IndexBounds(seconds=-1.0)) as index:
        size = index.build()
        assert (size.files, size.left_out) == (0, 3)


def test_the_projects_own_sources_are_read_first(tmp_path: Path) -> None:
    files = {"node_modules/x/i.js": "function f() {}\n", "notes.txt": "f\n", "src/i.js": "let a\n"}
    with index_of(tmp_path, files, IndexBounds(files=1)) as index:
        assert index.build().files == 1
        assert index.search(["src/i.js"])[0].how == "file"


def test_a_file_that_takes_too_long_to_parse_is_skipped(tmp_path: Path) -> None:
    files = {"slow.cpp": "a<" * 200_000, "b.py": "def f(): ...\n"}
    with index_of(tmp_path, files, IndexBounds(file_seconds=0.2)) as index:
        assert index.build().left_out == 1
        assert index.search(["f"])[0].how == "named"
        assert index.search(["slow.cpp"])[0].how == "file"


def test_an_index_that_takes_too_long_is_abandoned(tmp_path: Path) -> None:
    files = {"slow.cpp": "a<" * 200_000}
    bounds = IndexBounds(file_seconds=100.0, seconds=1.0, end_seconds=0.5)
    with (
        index_of(tmp_path, files, bounds) as index,
        pytest.raises(IndexUnavailable, match="time or memory"),
    ):
        index.build()


def test_the_memory_limit_is_enforced(tmp_path: Path) -> None:
    body = "".join(f"def unusual_{n}(): other_{n}(word_{n})\n" for n in range(5_000))
    files = {f"m{n}.py": body.replace("_", f"_{n}_") for n in range(30)}
    with index_of(tmp_path, files, IndexBounds(memory=250_000_000)) as index:
        size = index.build()
        assert 0 < size.files < 30
        assert size.left_out == 30 - size.files
        assert index.search(["unusual_0_3"])


def test_a_process_that_was_killed_is_started_again_once(tmp_path: Path) -> None:
    with index_of(tmp_path, {"a.py": "def f(): ...\n"}) as index:
        for _ in range(2):
            assert index.search(["f"])[0].how == "named"
            os.kill(process_of(index), signal.SIGSEGV)
            with pytest.raises(IndexUnavailable, match="gave no answer"):
                index.search(["f"])
        with pytest.raises(IndexUnavailable, match="not tried again"):
            index.search(["f"])


def test_a_query_can_be_interrupted(tmp_path: Path) -> None:
    files = {"slow.cpp": "a<" * 200_000}
    with index_of(tmp_path, files, IndexBounds(file_seconds=100.0)) as index:
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
        fine, odd, linked = index.search(["fine", "odd", "root:"])
    assert fine.definitions[0].id == "dir with spaces/ünï.py::fine"
    assert (odd.definitions, linked.passages) == ((), ())


def test_a_file_with_a_million_definitions_is_omitted(tmp_path: Path) -> None:
    files = {"many.py": "def f():0\n" * 1_000_000, "b.py": "def g(): ...\n"}
    with index_of(tmp_path, files) as index:
        assert index.build().left_out == 1
        assert index.search(["g"])[0].definitions[0].id == "b.py::g"


def test_of_very_many_definitions_in_one_file_the_first_are_kept(tmp_path: Path) -> None:
    body = "".join(f"def f{n}():0\n" for n in range(120_000))
    bounds = IndexBounds(file_bytes=4 * 1024 * 1024, file_seconds=20.0)
    with index_of(tmp_path, {"many.py": body}, bounds) as index:
        size = index.build()
        assert (size.left_out, size.entities) == (1, 100_002)


def test_a_path_of_very_many_folders_is_bounded(tmp_path: Path) -> None:
    source, _ = commit_of(tmp_path, {"a.py": "x = 1\n"})
    blob = source.text("hash-object", "-w", "--stdin", stdin=b"def deep(): ...\n")
    tree = source.text("mktree", stdin=f"100644 blob {blob}\ta.py\n".encode())
    for _ in range(300):
        tree = source.text("mktree", stdin=f"040000 tree {tree}\td\n".encode())
    commit = source.text("commit-tree", tree, "-m", "deep")
    with CodeIndex(source, commit) as index:
        assert index.build().entities < 100
        assert index.search(["deep"])[0].definitions[0].kind == "function"
