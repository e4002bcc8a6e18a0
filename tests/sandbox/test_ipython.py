"""Tests of the IPython session: state, errors, timeouts, crashes, and preloaded functions."""

import base64
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from resolver.sandbox.ipython import IPython
from resolver.sandbox.wire import MAX_TEXT
from tests.parts.processes import count_running, is_alive
from tests.parts.waiting import until


def _run(ipython: IPython, code: str, timeout: float = 30) -> Any:
    return ipython.run(code, timeout)


@pytest.mark.parametrize(
    ("code", "output"),
    [
        ("1 + 1", "2"),
        ("x = 1", ""),
        ("1 + 1;", ""),
        ("", ""),
        ("'a\\nb'", "'a\\nb'"),
        ("print('out'); import sys; print('err', file=sys.stderr)", "out\nerr"),
        ("!echo from the shell", "from the shell"),
        ("import os; _ = os.system('echo a; echo b >&2')", "a\nb"),
        ("import subprocess; _ = subprocess.run(['echo', 'child'])", "child"),
        ("print('é€😀')", "é€😀"),
        ("names = !printf 'a\\nb'\nnames", "['a', 'b']"),
        ("async def f(): return 5\nawait f()", "5"),
        ("from IPython.display import display; display({'a': 1})", "{'a': 1}"),
        ("%timeit -n1 -r1 -q pass", ""),
        ("import sys; sys.stdout.isatty()", "False"),
        ("import os; os.environ.get('SECRET')", ""),
        ("!exit 3\n_exit_code", "3"),
    ],
)
def test_a_cell_shows_what_it_prints_and_its_last_value(
    ipython: IPython, code: str, output: str
) -> None:
    result = _run(ipython, code)
    assert (result["output"], result["error"]) == (output, False)


def test_state_is_kept(ipython: IPython) -> None:
    _run(ipython, "import math\ndef area(r): return round(math.pi * r * r)")
    assert _run(ipython, "area(2)")["output"] == "13"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("def f():\n    1 / 0\nf()", ["ZeroDivisionError: division by zero", "----> 2     1 / 0"]),
        ("if True print(1)", ["SyntaxError"]),
        ("input()", ["EOFError"]),
        ("raise SystemExit(3)", ["SystemExit: 3"]),
        ("raise BaseException('odd')", ["odd"]),
        ("nosuchname", ["NameError"]),
        ("class X:\n  def __repr__(self): raise ValueError('bad repr')\nX()", ["bad repr"]),
        ("print('\\ud800')", ["UnicodeEncodeError"]),
    ],
)
def test_an_error_is_explained_without_colours(
    ipython: IPython, code: str, words: list[str]
) -> None:
    result = _run(ipython, code)
    assert "\x1b" not in result["output"]
    assert all(word in result["output"] for word in words), result["output"]
    assert result["error"] or "bad repr" in words
    assert _run(ipython, "'alive'")["output"] == "'alive'"


def test_a_cell_that_takes_too_long_is_interrupted_and_state_kept(ipython: IPython) -> None:
    _run(ipython, "kept = 7")
    result = _run(ipython, "import time\nprint('begun')\nwhile True: time.sleep(1)", 1)
    assert result["error"] and result["output"].startswith("begun\n")
    assert "KeyboardInterrupt" in result["output"] and "after 1 s" in result["output"]
    assert _run(ipython, "kept")["output"] == "7"


def test_a_program_of_a_cell_is_interrupted_too(ipython: IPython) -> None:
    sleep = f"sleep 91.5{os.getpid()}"
    assert _run(ipython, f"!{sleep}", 0.5)["error"]
    assert count_running(sleep) == 0


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("import os; print('last words', flush=True); os._exit(4)", "died (exit code 4)"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "died (exit code -9)"),
        ("import ctypes; ctypes.string_at(0)", "died (exit code -11)"),
        (
            "import signal, time\nsignal.signal(2, signal.SIG_IGN)\nwhile True: time.sleep(9)",
            "did not answer and was killed",
        ),
    ],
)
def test_a_lost_session_is_restarted_with_a_notice(ipython: IPython, code: str, word: str) -> None:
    _run(ipython, "lost = 1")
    result = _run(ipython, code, 1.5)
    assert result["error"] and word in result["output"]
    assert "NameError" in _run(ipython, "lost")["output"]
    assert _run(ipython, "2 * 2")["output"] == "4"


def test_a_session_that_dies_between_cells_is_reported_at_the_next(ipython: IPython) -> None:
    code = "import os, threading; threading.Timer(0.2, os._exit, (5,)).start(); os.getpid()"
    pid = int(_run(ipython, code)["output"])
    until(lambda: not is_alive(pid))
    result = _run(ipython, "'new'")
    assert "'new'" in result["output"] and "died (exit code 5)" in result["output"]


def test_a_huge_output_is_truncated_and_counted(ipython: IPython) -> None:
    result = _run(ipython, "for n in range(200_000): print(n)")
    assert result["output"].startswith("0\n1\n") and result["output"].endswith("199999")
    assert len(result["output"]) < MAX_TEXT + 300 and result["omitted"] > 1_000_000


def _wheel(folder: Path) -> None:
    """A package `greeting` of one module."""
    info = "greeting-1.0.dist-info"
    with zipfile.ZipFile(folder / "greeting-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("greeting.py", "word = 'hello'\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def test_a_package_is_installed_for_the_session_alone(ipython: IPython, tmp_path: Path) -> None:
    _wheel(tmp_path)
    result = _run(ipython, f"%pip install --no-index --find-links {tmp_path} greeting", 120)
    assert "for this IPython session alone" in result["output"], result
    assert _run(ipython, "import greeting; greeting.word")["output"] == "'hello'"
    assert "No module named" in _run(ipython, "!python3 -c 'import greeting'")["output"]


def test_other_installers_are_refused_with_a_hint(ipython: IPython) -> None:
    assert "Nothing was installed" in _run(ipython, "%conda install x")["output"]


def test_a_picture_is_a_data_url(ipython: IPython) -> None:
    png = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 20).decode()
    code = f"from IPython.display import display, Image\nimport base64\npng = '{png}'\n"
    result = _run(ipython, code + "display(Image(base64.b64decode(png)))")
    assert result["images"] == [f"data:image/png;base64,{png}"]
    assert _run(ipython, "Image(base64.b64decode(png))")["images"] == result["images"]
    assert _run(ipython, "1")["images"] == []


def test_open_figures_are_captured_and_closed(ipython: IPython) -> None:
    fake = """
import sys, types
plots = types.ModuleType("matplotlib.pyplot")
figures = [1]
class Figure:
    def savefig(self, file, format): file.write(b"png bytes")
plots.get_fignums = lambda: list(figures)
plots.figure = lambda number: Figure()
plots.close = lambda what: figures.clear()
sys.modules["matplotlib.pyplot"] = plots
"""
    assert _run(ipython, fake)["images"] == [
        "data:image/png;base64," + base64.b64encode(b"png bytes").decode()
    ]
    result = _run(ipython, "figures")
    assert (result["output"], result["images"]) == ("[]", [])
    _run(ipython, "del sys.modules['matplotlib.pyplot']")


def test_the_file_functions_are_available(ipython: IPython) -> None:
    _run(ipython, "open('many.py', 'w').write(''.join(f'line {n}\\n' for n in range(1, 301)))")
    shown = _run(ipython, "open_file('many.py', 150, 10)")["output"]
    assert "(300 lines)]" in shown and "150|line 150" in shown
    assert "160|line 160" in _run(ipython, "scroll_down()")["output"]
    assert "150|line 150" in _run(ipython, "scroll_up()")["output"]
    assert "7|line 7" in _run(ipython, "goto_line(7)")["output"]
    assert "many.py:42: line 42" in _run(ipython, "search_file('line 42')")["output"]
    assert "./many.py:42: line 42" in _run(ipython, "search_dir('line 42')")["output"]
    assert "More than 100" in _run(ipython, "search_dir('line')")["output"]
    assert _run(ipython, "find_file('many*')")["output"] == "./many.py"
    assert "No file" in _run(ipython, "find_file('none')")["output"]


def test_the_edit_functions_change_files(ipython: IPython) -> None:
    assert (
        "is created"
        in _run(ipython, "create_file('calc.py', 'def f():\\n    return 1\\n')")["output"]
    )
    output = _run(ipython, "edit_file_by_replace('calc.py', 'return 1', 'return 2')")["output"]
    assert "     2\t    return 2" in output
    _run(ipython, "insert_content_at_line('calc.py', 1, '# first')")
    _run(ipython, "append_file('calc.py', 'x = f()')")
    assert _run(ipython, "print(open('calc.py').read())")["output"] == (
        "# first\ndef f():\n    return 2\nx = f()"
    )


def test_an_edit_function_refuses_a_broken_edit_and_shows_it(ipython: IPython) -> None:
    _run(ipython, "_ = open('whole.py', 'w').write('x = (1)\\n')")
    result = _run(ipython, "edit_file_by_replace('whole.py', '(1)', '(1')")
    output = result["output"]
    assert "was not made" in output and "was never closed" in output and not result["error"]
    assert "     1\tx = (1\n" in output and "     1\tx = (1)\n" in output
    assert _run(ipython, "open('whole.py').read()")["output"] == "'x = (1)\\n'"


def test_modules_of_the_repository_can_be_imported(ipython: IPython) -> None:
    _run(ipython, "import os; os.makedirs('resolver', exist_ok=True)")
    _run(ipython, "open('resolver/__init__.py', 'w').write('word = 5')")
    _run(ipython, "open('traitlets.py', 'w').write('1/0')")
    assert _run(ipython, "import resolver; resolver.word")["output"] == "5"
