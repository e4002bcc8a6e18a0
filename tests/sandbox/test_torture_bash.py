"""Tests of what commands can do to the shell that runs them."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from resolver.sandbox import shell
from resolver.sandbox.bash import Bash
from resolver.sandbox.spool import Spool
from resolver.sandbox.wire import MAX_TEXT, CommandResult
from tests.parts.waiting import until


def _run(bash: Bash, command: str, timeout: float = 10) -> CommandResult:
    return bash.run(command, timeout, False)


def _said(bash: Bash, *commands: str) -> tuple[str, int | None]:
    """Return output and exit of the last of the commands."""
    for command in commands[:-1]:
        _run(bash, command)
    result = _run(bash, commands[-1])
    return result["output"], result["exit_code"]


EXACT: list[tuple[str, tuple[str, ...], str, int]] = [
    ("alias", ("alias hello='echo alias'", "hello x"), "alias x\n", 0),
    ("alias in the same command", ("alias hello='echo alias'\nhello x",), "alias x\n", 0),
    ("function", ("f() { local x=$1; echo f $x; return 4; }", "f 1"), "f 1\n", 4),
    ("trap ERR", ("trap 'echo error' ERR", "false"), "error\n", 1),
    ("trap DEBUG", ("trap 'echo debug' DEBUG", "trap - DEBUG", "echo clean"), "clean\n", 0),
    ("trap EXIT", ("trap 'echo bye' EXIT", "exit 3"), "bye\n", 3),
    ("PROMPT_COMMAND", ("PROMPT_COMMAND='echo prompt'", "echo hi"), "hi\n", 0),
    ("PS1", ("PS1='### '; PS2='>> '; PS0='zero '", "echo hi"), "hi\n", 0),
    ("PS1 that runs", ("PS1='$(echo gotcha >&2) '", "echo hi"), "hi\n", 0),
    ("PS4", ("PS4='XX '", "set -x", "echo a"), "XXX echo a\na\n", 0),
    ("stdout closed", ("exec >&-", "echo hi"), "hi\n", 0),
    ("all closed", ("exec <&- >&- 2>&-", "echo hi; cat </dev/null"), "hi\n", 0),
    ("our descriptors closed", ("exec 240>&- 241>&- 242>&-", "echo hi"), "hi\n", 0),
    ("stty", ("stty -echo raw; stty sane; stty echo onlcr opost", "echo hi"), "hi\n", 0),
    ("IFS", ("IFS=0123456789", "false", "echo \"$?\""), "1\n", 0),
    ("IFS empty", ("IFS=", "x='a b'; printf '%s|' $x"), "a b|", 0),
    ("readonly", ("readonly X=1 PWD HOME PATH", "echo $X"), "1\n", 0),
    ("readonly assigned", ("readonly X=1", "X=2; echo after"), "bash: X: readonly variable\n", 1),
    ("PATH gone", ("unset PATH", "cd /; pwd"), "/\n", 0),
    ("PATH gone and ls", ("unset PATH", "ls"), "bash: ls: No such file or directory\n", 127),
    ("all unset", ("for v in $(compgen -v); do unset $v; done 2>/dev/null", "echo hi"), "hi\n", 0),
    ("nounset", ("set -u", "echo $nope"), "bash: nope: unbound variable\n", 1),
    ("noexec", ("set -n", "echo hi"), "hi\n", 0),
    ("verbose", ("set -v", "set +v", "echo hi"), "hi\n", 0),
    ("posix", ("set -o posix", "echo hi"), "hi\n", 0),
    ("no job control", ("set +m", "echo hi"), "hi\n", 0),
    ("wait", ("sh -c 'exit 5' &", "wait $!"), "", 5),
    ("fg", ("sleep 0.2 &", "fg"), "sleep 0.2\n", 0),
    ("jobs", ("sleep 5 &", "kill %1; wait 2>/dev/null", "jobs"), "", 0),
    ("disown", ("sleep 5 & disown", "jobs"), "", 0),
    ("coproc", ("coproc cat; echo x >&${COPROC[1]}; read y <&${COPROC[0]}; echo $y",), "x\n", 0),
    ("descriptor kept", ("exec 5>f; echo x >&5", "echo y >&5; exec 5>&-; cat f"), "x\ny\n", 0),
    ("arguments", ("set -- a b c", "echo $1 $#"), "a 3\n", 0),
    ("logout", ("logout 2>/dev/null", "echo hi"), "hi\n", 0),
    ("break", ("break 2>/dev/null; continue 2>/dev/null", "echo hi"), "hi\n", 0),
    ("kill 0", ("trap '' TERM; kill 0", "echo hi"), "hi\n", 0),
    ("umask", ("umask 777", "echo hi; umask 022"), "hi\n", 0),
    ("ulimit -f", ("ulimit -f 0", "echo hi"), "hi\n", 0),
    ("ulimit -v", ("ulimit -v 10000", "echo hi"), "hi\n", 0),
    ("crlf", ("echo a\r\necho b\r\n",), "a\r\nb\r\n", 0),
    ("a bash in the bash", ("bash -ic 'echo sub'",), "sub\n", 0),
    ("a pager", ("seq 1000 | more | tail -n 1",), "1000\n", 0),
    ("escapes", ("printf '\\033[31mred\\033]0;t\\a\\033[2J'",), "\033[31mred\033]0;t\a\033[2J", 0),
    ("end of input", ("printf '\\004'; echo on",), "\004on\n", 0),
    ("function named dot", ("function . { echo mine; }", "echo hi"), "hi\n", 0),
    ("function named exit", ("exit() { echo mine; }", "echo hi"), "hi\n", 0),
    ("overridden", ("printf() { :; }; declare() { :; }; command() { :; }", "type true"),
     "true is a shell builtin\n", 0),
    ("history expansion", ("set -H", "echo a!b"), "a!b\n", 0),
    ("a here-document without end", ("cat <<X 2>/dev/null\nabc",),
     "bash: warning: here-document at line 1 delimited by end-of-file (wanted `X')\nabc\n", 0),
    ("a last backslash", ("echo a \\",), "a\n", 0),
    ("exit code above 255", ("sh -c 'exit 300'",), "", 44),
]  # fmt: skip


@pytest.mark.parametrize(
    ("commands", "output", "code"), [row[1:] for row in EXACT], ids=[row[0] for row in EXACT]
)
def test_an_unusual_shell_option_has_only_its_own_effect(
    bash: Bash, commands: tuple[str, ...], output: str, code: int
) -> None:
    assert _said(bash, *commands) == (output, code)
    assert "usable\n" in _run(bash, "set +xv; echo usable")["output"]


@pytest.mark.parametrize(
    "command",
    ["kill -STOP $$", "suspend -f", "kill -STOP 0"],
)
def test_a_stopped_shell_is_continued(bash: Bash, command: str) -> None:
    _run(bash, "KEPT=yes")
    _run(bash, command, 20)
    assert _said(bash, "echo $KEPT") == ("yes\n", 0)


@pytest.mark.parametrize(
    "command",
    [
        "enable -n printf",
        "builtin() { :; }",
        "enable -n printf declare . source builtin echo cd",
    ],
)
def test_a_shell_that_can_not_report_is_replaced_with_a_notice(bash: Bash, command: str) -> None:
    _run(bash, "cd /usr; export KEPT=yes")
    first, second = _run(bash, command, 20), _run(bash, "echo $KEPT $PWD", 20)
    assert "was killed. A new shell" in first["notice"] + second["notice"]
    assert _said(bash, "echo $KEPT $PWD") == ("yes /usr\n", 0)


def test_a_restricted_shell_is_replaced_with_a_notice(bash: Bash) -> None:
    _run(bash, "cd /usr; export KEPT=yes")
    assert "restricted" in _run(bash, "set -r")["notice"]
    assert _said(bash, "cd /; echo $KEPT > /dev/stdout; pwd") == ("yes\n/\n", 0)


@pytest.mark.parametrize(
    "command",
    ['for i in {3..300}; do eval "exec $i>&-"; done', "ulimit -n 10", "exec 0</dev/null 13>&-"],
)
def test_a_shell_without_its_descriptors_is_replaced_by_the_next_command(
    bash: Bash, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell, "READY_SECONDS", 1.0)
    _run(bash, "cd /usr; export KEPT=yes")
    _run(bash, command, 0.3)
    assert _said(bash, "echo $KEPT $PWD")[0].endswith("yes /usr\n")


def test_the_numbers_of_the_shells_descriptors_may_be_in_use_in_the_server(bash: Bash) -> None:
    held: list[int] = []
    try:
        for first_free in range(shell.CONTROL - 12, shell.TERMINAL + 12):
            while (descriptor := os.open(os.devnull, os.O_RDONLY)) < first_free:
                held.append(descriptor)
            os.close(descriptor)
            assert _said(bash, "echo usable") == ("usable\n", 0)
            assert _said(bash, "ls /proc/self/fd") == ("0\n1\n2\n3\n", 0)  # 3 is ls's own
            bash.close()
            assert {os.fstat(number).st_rdev for number in held} == {
                Path(os.devnull).stat().st_rdev
            }
    finally:
        for number in held:
            os.close(number)


def test_an_exit_trap_that_never_ends_is_survived(bash: Bash) -> None:
    assert _run(bash, "trap 'while :; do :; done' EXIT; exit 3", 0.5)["timed_out"]
    assert _said(bash, "echo usable") == ("usable\n", 0)


def test_an_environment_too_large_to_start_programs_is_survived(bash: Bash) -> None:
    assert _run(bash, "export A=$(head -c 3000000 /dev/zero | tr '\\0' q)")["exit_code"] == 0
    assert _said(bash, "ls")[1] == 126
    assert _said(bash, "unset A; ls -d /") == ("/\n", 0)


def test_a_limit_on_processor_time_ends_the_shell_with_a_notice(bash: Bash) -> None:
    assert "killed by signal" in _run(bash, "ulimit -t 1; while :; do :; done", 20)["notice"]
    assert _said(bash, "echo usable") == ("usable\n", 0)


def test_a_million_lines_are_counted_to_the_last_byte(bash: Bash) -> None:
    result = _run(bash, "seq 1 1000000", 60)
    assert Path(str(result["output_file"])).stat().st_size == 6_888_896
    head, _, rest = result["output"].partition("\n[... ")
    tail = rest.partition("...]\n")[2]
    assert len(head) + len(tail) + result["omitted"] == 6_888_896
    assert head.startswith("1\n2\n") and tail.endswith("999999\n1000000\n")
    page = _run(bash, f"sed -n '50000,50002p' {result['output_file']}")
    assert page["output"] == "50000\n50001\n50002\n"


def test_a_line_of_five_megabytes_is_truncated_in_the_middle(bash: Bash) -> None:
    result = _run(bash, "head -c 5000000 /dev/zero | tr '\\0' a; echo; echo end")
    assert result["output"].startswith("aaa") and result["output"].endswith("a\nend\n")
    assert len(result["output"]) < MAX_TEXT + 300


def test_a_binary_output_becomes_valid_text(bash: Bash) -> None:
    result = _run(bash, "head -c 300000 /dev/urandom; printf '\\0\\355\\240\\200'")
    result["output"].encode("utf-8")
    assert "\0" not in result["output"] and result["output"].endswith("\ufffd")
    assert Path(str(result["output_file"])).stat().st_size == 300_004


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("echo " + "x" * 500_000 + " | wc -c", "500001\n"),
        ("wc -c <<'E'\n" + "z\n" * 250_000 + "E", "500000\n"),
        ("echo one\n" + "# comment\n" * 50_000 + "echo two", "one\ntwo\n"),
    ],
    ids=["one word", "a here-document", "many lines"],
)
def test_a_command_of_half_a_megabyte_runs(bash: Bash, command: str, expected: str) -> None:
    assert _run(bash, command, 30)["output"] == expected


def test_a_lone_surrogate_ends_nothing(bash: Bash) -> None:
    with pytest.raises(UnicodeEncodeError):
        _run(bash, "echo \ud800")
    assert _said(bash, "echo usable") == ("usable\n", 0)


def test_a_flood_on_both_streams_keeps_its_order(bash: Bash) -> None:
    loop = "for i in {1..800}; do echo out $i; echo err $i >&2; done"
    lines = _run(bash, loop)["output"].splitlines()
    assert lines == [f"{kind} {i}" for i in range(1, 801) for kind in ("out", "err")]


def test_nohup_and_a_new_session_outlive_their_command(bash: Bash) -> None:
    _run(bash, "nohup sh -c 'sleep 0.3; echo one >> proof' >/dev/null 2>&1 &")
    _run(bash, "setsid -f sh -c 'sleep 0.3; echo two >> proof'")
    until(lambda: sorted(_said(bash, "cat proof")[0].split()) == ["one", "two"])


def test_an_input_that_nobody_reads_does_not_block(bash: Bash) -> None:
    _run(bash, "sleep 60", 0.2)
    result = bash.run("x" * 200_000, 1, True)
    assert "did not read" in result["notice"]
    assert _said(bash, "echo usable")[0].endswith("usable\n")


def test_every_answer_of_a_dialogue_reaches_its_question(bash: Bash) -> None:
    ask = 'for q in name age; do read -p "$q? " a; echo "$q=$a"; done'
    asked = _run(bash, ask, 0.4)["output"]
    while not asked:
        asked = bash.run("", 0.4, True)["output"]
    assert asked == "name? "
    assert bash.run("Ann", 5, True)["output"] == "name=Ann\nage? "
    assert bash.run("7", 5, True)["output"] == "age=7\n"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    folder = tmp_path / "small"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)], capture_output=True
    )
    if made.returncode != 0:
        pytest.skip("only root can mount a file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_on_a_full_disk_commands_run_and_can_free_it(small_disk: Path, root: Path) -> None:
    from resolver.sandbox.environment import Outputs, shell_environment
    from resolver.sandbox.processes import Family

    path = shutil.which("bash") or "/bin/bash"
    environment = shell_environment({"PATH": "/usr/bin:/bin"}, False, None, {}, path)
    live = Bash(Family(), path, environment, str(root), Outputs(str(small_disk / "scratch")))
    try:
        assert _said(live, f"cat /dev/zero > {small_disk}/full 2>/dev/null; echo hi") == ("hi\n", 0)
        result = _run(live, "seq 1 100000; " + ": " + "x" * 100_000)
        assert result["output"].endswith("100000\n") and result["exit_code"] == 0
        assert "not kept" in result["output"] or "its first" in result["output"]
        assert _said(live, "exit 3")[1] == 3
        assert _said(live, f"rm {small_disk}/full; echo freed") == ("freed\n", 0)
        assert _run(live, "seq 1 100000")["output_file"]
    finally:
        live.close()


def test_a_spool_on_a_full_disk_says_how_much_it_kept(small_disk: Path) -> None:
    spool = Spool(str(small_disk / "out" / "1.txt"))
    for _ in range(40):
        spool.add(b"0123456789abcde\n" * 4096)
    excerpt = spool.excerpt()
    assert "its first" in excerpt.text and excerpt.text.endswith("abcde\n")
    assert Path(spool.path).stat().st_size < 1_048_577
