"""Tests of the long-lived shell under stress."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resolver.sandbox.bash import Bash
from resolver.sandbox.shell import Shell
from resolver.sandbox.wire import CommandResult
from tests.parts.processes import count_running, is_alive
from tests.parts.waiting import until


def _run(bash: Bash, command: str, timeout: float = 10) -> CommandResult:
    return bash.run(command, timeout, False)


def _type(bash: Bash, text: str, timeout: float = 5) -> CommandResult:
    return bash.run(text, timeout, True)


def _start(bash: Bash, command: str, expected: str) -> CommandResult:
    """Start a command that does not end, and return the result that completes its first output."""
    result = _run(bash, command, 0.2)
    output = result["output"]
    while len(output) < len(expected) and result["exit_code"] is None:
        result = _type(bash, "", 0.2)
        output += result["output"]
    assert output == expected
    return result


def _start_sleep(bash: Bash, then: str = "") -> None:
    """Start a `sleep` of a minute as the foreground job, and return when it runs."""
    sleep = f"sleep 60.25{os.getpid()}"
    assert _run(bash, f"{sleep}{then}", 0.2)["timed_out"]
    until(lambda: count_running(sleep), pause=0.01)


def _output_of(bash: Bash, command: str) -> tuple[str, int | None]:
    result = _run(bash, command)
    return result["output"], result["exit_code"]


EXACT: list[tuple[str, str, int]] = [
    ("history; alias; declare -F", "", 0),
    ("true", "", 0),
    ("false", "", 1),
    ("echo hello", "hello\n", 0),
    ("printf 'no newline'", "no newline", 0),
    ("echo a; echo b >&2; echo c", "a\nb\nc\n", 0),
    ("sh -c 'exit 42'", "", 42),
    ("(exit 3)", "", 3),
    ("return 7", "", 7),
    ("echo 'a b'  \"$((1+2))\"", "a b 3\n", 0),
    ("cat <<'X'\n$HOME `id`\nX", "$HOME `id`\n", 0),
    ("for i in 1 2\ndo\n  echo $i\ndone\n\n# comment", "1\n2\n", 0),
    ("echo one \\\n  two", "one two\n", 0),
    ("f() { echo in $1; }\nf x", "in x\n", 0),
    ("echo 'it'\"'\"'s'", "it's\n", 0),
    ("echo hi!! wow!", "hi!! wow!\n", 0),
    ("[[ -t 0 ]] && echo terminal; [[ -t 1 ]] || echo pipe", "terminal\npipe\n", 0),
    ("echo $TERM $PAGER $GIT_PAGER $PS1.", "dumb cat cat .\n", 0),
    ("echo ä€😀", "ä€😀\n", 0),
    ("printf '\\377x\\0y'", "\ufffdx\ufffdy", 0),
    ("printf '\\r\\n\\f\\x1b'", "\r\n\f\x1b", 0),
    ("sh -c 'kill -9 $$'", "Killed\n", 137),
    ("echo ${nope?}; echo never", "bash: nope: parameter not set\n", 1),
    ("nosuchprogram", "bash: nosuchprogram: command not found\n", 127),
    ("exec 1>/dev/null; echo gone", "", 0),
    ("echo here; exec 2>&-", "here\n", 0),
    ("exec 0</dev/null; cat", "", 0),
    ("", "", 0),
    ("   \n\n", "", 0),
    ("# nothing", "", 0),
    ("yes | head -n 2", "y\ny\n", 0),
    ("sleep 0.05 & wait; echo waited", "waited\n", 0),
    ("ls /proc/self/fd | tr '\\n' ' '", "0 1 2 3 ", 0),
    ("shopt -s extglob\necho @(x|y)", "@(x|y)\n", 0),
    ("echo before; ! true", "before\n", 1),
    ("echo -n; echo $SECRET-$EXTRA", "-given\n", 0),
    ("printf '%s\\n' '\\'", "\\\n", 0),
    ("echo x | cat - <(echo y)", "x\ny\n", 0),
    ("set -x; echo traced; set +x", "++ echo traced\ntraced\n++ set +x\n", 0),
]


def test_output_and_exit_code_are_exact(bash: Bash) -> None:
    for command, output, code in EXACT:
        result = _run(bash, command)
        assert (result["output"], result["exit_code"]) == (output, code), command
        assert result["notice"] == "" and not result["timed_out"], command
        assert _output_of(bash, "echo $?; echo usable") == (f"{code}\nusable\n", 0), command


def test_state_is_kept_between_commands(bash: Bash, root: Path) -> None:
    (root / "sub dir").mkdir()
    _run(bash, "cd 'sub dir'; export A=1; B=2; f() { echo f $B; }; shopt -s nullglob; umask 027")
    result = _run(bash, "echo $A $B $(umask) *; f; pwd")
    assert result["output"] == f"1 2 0027\nf 2\n{root}/sub dir\n"
    assert result["cwd"] == f"{root}/sub dir"


@pytest.mark.parametrize(
    "command",
    [
        "echo ran > proof\nif true; then",
        "echo ran > proof\necho (",
        "echo ran > proof; 'unclosed",
        "echo ran > proof\ndone",
        "echo ran > proof\n}",
        "echo ran > proof; cat <(",
    ],
)
def test_a_syntax_error_is_reported_before_anything_runs(
    bash: Bash, root: Path, command: str
) -> None:
    result = _run(bash, command)
    assert result["exit_code"] == 2 and result["output"].startswith("bash: line ")
    assert "Nothing was run" in result["notice"] and not (root / "proof").exists()
    assert _output_of(bash, "echo usable") == ("usable\n", 0)


def test_no_output_can_end_a_command(bash: Bash) -> None:
    command = r"""
    printf '\0000123\0' > /proc/$$/fd/240; set
    printf '\000%s\000' "$(tr -d '\0' < /proc/$$/cmdline)"; echo tail; sh -c 'exit 9'"""
    result = _run(bash, command)
    assert result["output"].endswith("tail\n") and result["exit_code"] == 9
    assert _output_of(bash, "echo next") == ("next\n", 0)


def test_garbage_in_the_shells_pipes_costs_at_most_the_shell(bash: Bash) -> None:
    _run(bash, "cd /usr; export A=1")
    rubbish = (
        "for f in /proc/$$/fd/*; do printf '0\\0000123\\0) {' > $f; done 2>/dev/null; echo tail"
    )
    assert "tail" in _run(bash, rubbish, 1)["output"]
    assert "1 /usr\n" in _run(bash, "echo $A $PWD")["output"]


def test_a_timeout_keeps_the_partial_output_and_the_command(bash: Bash, root: Path) -> None:
    wait = "until [ -e continue ]; do sleep 0.05; done"
    command = f"echo begun; {wait}; echo ended; exit_code() {{ return 5; }}; exit_code"
    result = _start(bash, command, "begun\n")
    assert result["exit_code"] is None and result["timed_out"]
    (root / "continue").touch()
    result = _type(bash, "", 60)
    assert (result["output"], result["exit_code"]) == ("ended\n", 5) and not result["timed_out"]


@pytest.mark.parametrize(
    "command",
    [
        "sleep 71.25PID",
        "sh -c 'sleep 71.25PID; echo after'",
        "while :; do :; done",
        "sleep 71.25PID | cat",
        "$(sleep 71.25PID)",
        "read -r line",
        "cat",
        "python3 -c 'while True: pass'",
        "trap '' INT; sleep 71.25PID",
        "python3 -c 'import signal,time; signal.signal(2,1); time.sleep(71)'",
        "while :; do sh -c 'trap \"\" INT; sleep 71.25PID'; done",
    ],
)
def test_the_next_command_ends_the_one_before(bash: Bash, command: str) -> None:
    _run(bash, "export KEPT=yes; cd /usr")
    assert _run(bash, command.replace("PID", str(os.getpid())), 0.3)["timed_out"]
    result = _run(bash, "echo $KEPT $PWD")
    assert result["output"] == "yes /usr\n" and "previous command" in result["notice"]
    assert count_running(f"sleep 71.25{os.getpid()}") == 0


@pytest.mark.parametrize("seconds", [0.0, 0.002, 0.02])
def test_a_command_interrupted_in_any_phase_of_its_start_keeps_functions(
    bash: Bash, seconds: float
) -> None:
    """Bash discards the line that it reads when SIGINT arrives, the report's among them."""
    _run(bash, "f() { echo still; }")
    for _ in range(8):
        _run(bash, "sleep 60", seconds)
        assert _output_of(bash, "f") == ("still\n", 0)


def test_input_answers_a_program_that_asks(bash: Bash) -> None:
    _start(bash, "read -p 'name? ' name; echo \"hello $name\"", "name? ")
    result = _type(bash, "Zoë")
    assert (result["output"], result["exit_code"]) == ("hello Zoë\n", 0)


def test_input_is_not_echoed_and_a_prompt_comes_back_soon(bash: Bash) -> None:
    _start(bash, "python3 -q -i", ">>> ")
    result = _type(bash, "print(6 * 7)", 30)
    assert result["output"] == "42\n>>> " and result["exit_code"] is None
    assert not result["timed_out"]
    assert _type(bash, "C-d")["exit_code"] == 0


def test_a_password_prompt_on_the_terminal_is_shown(bash: Bash) -> None:
    command = "sh -c 'printf \"password: \" > /dev/tty; read x < /dev/tty; echo got $x'"
    _start(bash, command, "password: ")
    assert _type(bash, "pw")["output"] == "got pw\n"


def test_keys_are_signals(bash: Bash) -> None:
    _start_sleep(bash, then="; echo never")
    assert _type(bash, "C-c")["exit_code"] == 130
    _run(bash, "cat", 0.2)
    assert _type(bash, "C-d")["exit_code"] == 0
    _start_sleep(bash)
    result = _type(bash, "C-z")
    assert result["exit_code"] == 148 and "Stopped" in result["output"]
    assert "sleep 60" in _run(bash, "jobs; kill %1")["output"]


def test_a_report_that_is_lost_twice_is_asked_for_again(
    bash: Bash, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C makes bash discard the line that it reads, and perhaps the next one, too."""
    _run(bash, "f() { echo still; }")
    write, written = Shell._write_input, []

    def lose_reports(shell: Shell, text: str) -> None:
        written.append(text)
        write(shell, text if len(written) > 2 else text.partition("{ \\builtin printf")[0])

    monkeypatch.setattr(Shell, "_write_input", lose_reports)
    _start_sleep(bash)
    assert _type(bash, "C-c", 10)["exit_code"] == 130
    assert len(written) == 3
    assert _output_of(bash, "f") == ("still\n", 0)


def test_a_key_without_the_flag_goes_to_the_running_command(bash: Bash) -> None:
    _start_sleep(bash)
    assert _run(bash, "C-c")["exit_code"] == 130


def test_a_line_longer_than_the_terminals_buffer_arrives_completely(bash: Bash, root: Path) -> None:
    _run(bash, "cat > long", 0.2)
    _type(bash, "x" * 20_000, 60)
    _type(bash, "C-d")
    assert (root / "long").read_text() == "x" * 20_000 + "\n"


def test_input_without_a_command_is_reported_and_not_executed(bash: Bash, root: Path) -> None:
    result = _type(bash, "touch proof")
    assert "No command is running" in result["notice"] and not (root / "proof").exists()


def test_exit_reports_its_code_and_a_new_shell_starts(bash: Bash) -> None:
    _run(bash, "export OLD=1")
    result = _run(bash, "cd /usr; export NEW=\"a 'b'\n$c\"; echo bye; exit 3")
    assert (result["output"], result["exit_code"], result["cwd"]) == ("bye\n", 3, "/usr")
    assert "exited with code 3" in result["notice"]
    assert _output_of(bash, 'echo $?; echo "$OLD $NEW $PWD"') == ("3\n1 a 'b'\n /usr\n", 0)


def test_a_failing_strict_script_does_not_poison_the_next_command(bash: Bash) -> None:
    result = _run(bash, "set -euo pipefail\nexport A=1\necho one\nfalse\necho two")
    assert (result["output"], result["exit_code"]) == ("one\n", 1)
    assert _output_of(bash, "false; echo $A $UNSET") == ("1\n", 0)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("kill -9 $$", 137),
        ("exec sh -c 'exit 6'", 6),
        ("exec nosuchprogram", 127),
        ("kill -SEGV $$", 139),
        ("trap 'echo mine' EXIT; cd /; exit 4", 4),
    ],
)
def test_a_lost_shell_is_replaced_with_its_state(bash: Bash, command: str, code: int) -> None:
    _run(bash, "cd /usr; export A=1")
    assert _run(bash, command)["exit_code"] == code
    assert (
        _output_of(bash, "echo $A; [[ $PWD == /usr || $PWD == / ]] && echo there")[0]
        == "1\nthere\n"
    )


def test_a_shell_killed_from_outside_is_detected(bash: Bash) -> None:
    pid = int(_run(bash, "cd /usr; echo $$")["output"])
    os.kill(pid, signal.SIGKILL)
    until(lambda: not is_alive(pid))
    result = _run(bash, "pwd")
    assert result["output"] == "/usr\n" and "was killed by signal 9" in result["notice"]


def test_a_background_job_does_not_delay_the_command(bash: Bash) -> None:
    assert _output_of(bash, "sleep 400 & echo started") == ("started\n", 0)
    assert "sleep 400" in _output_of(bash, "jobs")[0]


def test_a_job_writes_between_commands(bash: Bash, root: Path) -> None:
    _run(bash, "(until [ -e ended ]; do sleep 0.05; done; echo late; touch written) &")
    (root / "ended").touch()
    until((root / "written").exists)
    result = _run(bash, "echo now")
    assert result["output"] == "late\nnow\n" and "background" in result["notice"]


def test_a_job_that_floods_neither_blocks_nor_delays(bash: Bash, root: Path) -> None:
    _run(bash, "yes | (head -c 60000; touch flooding; exec cat) &")
    until((root / "flooding").exists)
    assert "mark" in _run(bash, "echo mark")["output"] or _run(bash, "true")["exit_code"] == 0
    assert _run(bash, "kill %1; echo $?")["exit_code"] == 0


def test_jobs_outlive_a_shell_that_exits(bash: Bash, root: Path) -> None:
    _run(
        bash, "(until [ -e ended ]; do sleep 0.05; done; echo alive > part; mv part proof) & exit 1"
    )
    (root / "ended").touch()
    until((root / "proof").exists)
    assert _output_of(bash, "cat proof") == ("alive\n", 0)


def test_a_removed_working_folder_is_survived(bash: Bash, root: Path) -> None:
    _run(bash, "mkdir gone; cd gone; rmdir ../gone")
    assert _run(bash, "exit 2")["exit_code"] == 2
    assert _output_of(bash, "pwd") == (f"{root}\n", 0)


def test_a_removed_scratch_folder_is_created_again(bash: Bash, tmp_path: Path) -> None:
    _run(bash, "seq 1 100000")
    _run(bash, f"rm -rf {tmp_path}/scratch")
    assert Path(str(_run(bash, "seq 1 100000")["output_file"])).exists()


def test_a_nul_is_removed_with_a_notice(bash: Bash) -> None:
    result = _run(bash, "echo a\0b")
    assert result["output"] == "ab\n" and "NUL" in result["notice"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=5)
@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60)))
def test_any_text_is_printed_as_it_is(bash: Bash, texts: list[str]) -> None:
    quoted = " ".join("'" + text.replace("'", "'\\''") + "'" for text in texts)
    assert _output_of(bash, f"printf %s {quoted}") == ("".join(texts), 0)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet="(){}[]<>|&;$`'\"\\!#* \n=~ab1", max_size=12))
def test_any_garbage_leaves_a_usable_shell(bash: Bash, text: str) -> None:
    result: Any = _run(bash, text, 0.3)
    assert result["exit_code"] is None or 0 <= result["exit_code"] <= 255
    assert "usable\n" in _run(bash, "echo usable")["output"]
