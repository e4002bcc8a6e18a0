"""Parses the code that drives the browser: calls of BrowserGym's actions and no other Python.

Any text gives either the steps or a CodeError whose message shows the correct form. No code is
executed.
"""

import ast
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

MAX_CODE: Final = 50_000
"""Maximum length of the code in characters."""

MAX_STEPS: Final = 50
"""Maximum number of steps in one piece of code."""

BUTTONS: Final = ("left", "middle", "right")
MODIFIERS: Final = ("Alt", "Control", "ControlOrMeta", "Meta", "Shift")

Value = str | int | float | bool | tuple[str, ...]


class CodeError(Exception):
    """Raised if the code can't be run; the message says why and shows the correct form."""


@dataclass(frozen=True)
class BrowserStep:
    """One call of an action, with a value for every parameter."""

    name: str
    arguments: Mapping[str, Value]
    text: str  # the call as it was written, at most 200 characters


@dataclass(frozen=True)
class _Parameter:
    name: str
    kind: str
    default: Value | None = None


def _form(line: str) -> tuple[str, tuple[_Parameter, ...]]:
    """Parse a row of the table, such as `click bid:bid button:button=left`."""
    name, *parts = line.split()
    parameters = []
    for part in parts:
        declaration, equals_sign, default = part.partition("=")
        label, _, kind = declaration.partition(":")
        value: Value | None = default if equals_sign else None
        if kind == "modifiers":
            value = ()
        elif equals_sign and kind == "number":
            value = int(default)
        elif equals_sign and kind == "flag":
            value = default == "True"
        parameters.append(_Parameter(label, kind, value))
    return name, tuple(parameters)


FORMS: Final = dict(
    _form(line)
    for line in (
        "goto url:text",
        "go_back",
        "go_forward",
        "reload",
        "click bid:bid button:button=left modifiers:modifiers=",
        "dblclick bid:bid button:button=left modifiers:modifiers=",
        "hover bid:bid",
        "focus bid:bid",
        "fill bid:bid value:text",
        "clear bid:bid",
        "press bid:bid key_comb:text",
        "keyboard_press key:text",
        "keyboard_type text:text",
        "select_option bid:bid options:options",
        "check bid:bid",
        "uncheck bid:bid",
        "scroll delta_x:number delta_y:number",
        "drag_and_drop from_bid:bid to_bid:bid",
        "upload_file bid:bid file:files",
        "new_tab url:text=about:blank",
        "tab_close",
        "tab_focus index:number",
        "noop wait_ms:number=1000",
        "screenshot marks:flag=False",
    )
)
"""Every action with its parameters."""

_KINDS: Final = {
    "text": "a string",
    "bid": "an element's id, like '12'",
    "number": "a number",
    "flag": "True or False",
    "button": f"one of {', '.join(map(repr, BUTTONS))}",
    "modifiers": f"a list of {', '.join(map(repr, MODIFIERS))}",
    "options": "a string or a list of strings",
    "files": "a path or a list of paths",
}


def read_code(code: str) -> tuple[BrowserStep, ...]:
    """Return the steps of the code in order. Raises CodeError."""
    if len(code) > MAX_CODE:
        raise CodeError(f"The code has {len(code):,} characters; at most {MAX_CODE:,} are taken.")
    try:
        with warnings.catch_warnings():  # invalid escapes are kept as they are
            warnings.simplefilter("ignore")
            body = ast.parse(_unfenced(code)).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        where = f" (line {error.lineno})" if isinstance(error, SyntaxError) else ""
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise _wrong(f"The code is not readable{where}: {reason}.") from error
    if not body:
        raise _wrong("The code contains no action.")
    if len(body) > MAX_STEPS:
        raise CodeError(f"The code has {len(body)} actions; at most {MAX_STEPS} are taken.")
    return tuple(_step(statement) for statement in body)


def browser_usage(name: str) -> str:
    """Return the form of an action, such as `click(bid, button='left', modifiers=[])`."""
    return f"{name}({', '.join(map(_written, FORMS[name]))})"


def _written(parameter: _Parameter) -> str:
    if parameter.default is None:
        return parameter.name
    shown = "[]" if parameter.default == () else repr(parameter.default)
    return f"{parameter.name}={shown}"


def _unfenced(code: str) -> str:
    """Return the code without the markdown fence that some models put around it."""
    match = re.fullmatch(r"\s*```[a-z]*\n(.*?)\n?\s*```\s*", code, re.DOTALL)
    lines = (match[1] if match else code).strip().splitlines()
    return "\n".join(line.strip() if re.match(r"\s+\w+\(", line) else line for line in lines)


def _wrong(what: str) -> CodeError:
    actions = ", ".join(FORMS)
    return CodeError(
        f"{what} Write one call per line, with plain values, like\n"
        "goto('http://127.0.0.1:8000/')\nfill('12', 'some text')\nclick('15')\n"
        f"The actions are {actions}."
    )


def _step(statement: ast.stmt) -> BrowserStep:
    """Return the step that a statement stands for. Raises CodeError."""
    line = f"Line {statement.lineno}"
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise _wrong(f"{line} is not a call of an action.")
    name = call.func.id
    if name not in FORMS:
        near = get_close_matches(name[:50], FORMS, 1, 0.6)
        hint = f"; did you mean {browser_usage(near[0])}?" if near else "."
        raise _wrong(f"{line}: there is no action {name[:50]!r}{hint}")
    arguments: dict[str, Value] = {}
    parameters = {parameter.name: parameter for parameter in FORMS[name]}
    try:
        if len(call.args) > len(parameters):
            raise ValueError(f"it takes {len(parameters)} values, not {len(call.args)}")
        named = list(zip(parameters, call.args, strict=False))
        named += [(keyword.arg or "**", keyword.value) for keyword in call.keywords]
        for label, node in named:
            if label not in parameters or label in arguments:
                raise ValueError(f"{label!r} is given twice or is not one of its parameters")
            arguments[label] = _value(node, parameters[label])
        for label, parameter in parameters.items():
            if parameter.default is not None:
                arguments.setdefault(label, parameter.default)
            elif label not in arguments:
                raise ValueError(f"{label} is missing")
    except ValueError as error:
        raise CodeError(f"{line}: {name}: {error}. The form is {browser_usage(name)}.") from error
    return BrowserStep(name, arguments, ast.unparse(call)[:200])


def _value(node: ast.expr, parameter: _Parameter) -> Value:
    """Return the value of a literal of the parameter's kind. Raises ValueError."""
    problem = f"{parameter.name} must be {_KINDS[parameter.kind]}, written out"
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError(problem) from error
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        value = tuple(value)
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    match parameter.kind:
        case "bid":
            digits = str(value).strip().strip("[]") if plain or isinstance(value, str) else ""
            if re.fullmatch(r"[0-9]{1,9}", digits):
                return digits
        case "number":
            if plain and abs(value) <= 1_000_000:
                return int(value)
        case "flag":
            if isinstance(value, bool):
                return value
        case "button":
            if value in BUTTONS:
                return str(value)
        case "modifiers":
            if isinstance(value, str):
                value = (value,)
            if isinstance(value, tuple) and set(value) <= set(MODIFIERS):
                return value
        case "options" | "files":
            if isinstance(value, str):
                value = (value,)
            if isinstance(value, tuple):
                return value
        case "text":
            if isinstance(value, str):
                return value
    raise ValueError(problem)
