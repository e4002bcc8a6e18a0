"""Finds added code that answers the input of a test with the value that the test expects.

An answer is a place where fixed inputs choose a fixed value: a row of a table, an arm of `match` or
`switch`, a condition with a `return`, a conditional expression. It is a finding if a test has the
same inputs with the same value, and if that is so for at least half of the answers of a function:
a table of which tests try a few rows is ordinary code. Rows that no test has could hide the one
that is there for a test, so a row with several numbers as its input is a finding by itself.

What text does not show is code that recognizes an input by what it computes from it, such as a
hash, a product or an order of its values: it looks like any other condition.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from resolver.verification.statements import CodeBlock, Statement
from resolver.verification.weakened_tests import is_assertion

MAX_TEXT = 400
"""Maximum number of characters of a statement that are searched for answers at once."""

MAX_BODY = 4
"""Number of statements below a condition among which its result is looked for."""

MAX_VALUES = 12
"""Maximum number of values of an assertion that is compared with answers."""

MIN_INPUT = 3
"""Number of numbers in an input that no table has by chance."""

_VALUE = r"(?:(?<![\w.])-?\d+(?:\.\d+)?(?!\w)|\"[^\"\n]{0,100}\"|'[^'\n]{0,100}')"
_VALUES = rf"(?:{_VALUE}(?:\s*,\s*{_VALUE}){{0,5}})"
_GROUP = rf"(?:{_VALUE}|[(\[{{]\s*{_VALUES}\s*,?\s*[)\]}}])"
_LITERAL = re.compile(_VALUE)

_ROW = re.compile(
    rf"(?P<inputs>{_GROUP})\s*\)?\s*(?:=>|->|:)\s*(?:return\s+|\{{\s*)?(?P<value>{_GROUP})(?=\s*(?:[,;)\]}}]|$))"
)
"""Matches a row of a table, or an arm with its value: `(1, 2): 7`, `5 => 11`, `case 5: return 11`.
"""

_PAIR = re.compile(
    rf"(?:(?:\[|[\])]\s*,)\s*[\[(]|(?:\{{|\}}\s*,)\s*\{{|\b(?:of|entry|put|set|insert|Pair)\()\s*"
    rf"(?P<inputs>{_GROUP})\s*,\s*(?P<value>{_VALUE})\s*[)\]}}](?!\s*(?:=>|->|:))"
)
"""Matches a row of a table that is written as a pair: `[[5, 11]]`, `Map.of(5, 11)`."""

_SHELL_ARM = re.compile(rf"(?P<inputs>{_GROUP})\)\s*(?:echo|printf|return)\s+(?P<value>{_VALUE})")
_CONDITION = re.compile(
    r"^(?:\}?\s*else\s+|el)?if\b(?P<test>.{0,200}?)(?:[:{)\]]|;\s*then|$)\s*\{?\s*"
    r"(?:return\s+(?P<value>[^;}]{1,100}?)\s*;?\s*\}?)?$"
)
_ARM = re.compile(r"^(?:case|when)\b(?P<test>.{1,200}?)(?::|\s=>|\bthen\b|->|\{|$)\s*$")
_COMPARED = re.compile(
    rf"(?:={{2,3}}|\bis\b|-eq|[^=!<>]=|\bequals\(|\bin\s*[\[({{])\s*(?P<inputs>{_GROUP})"
)
_CHOICE = re.compile(
    rf"(?P<value>{_VALUE})\s+if\s+(?P<test>[^\n]{{1,100}}?)\s+else\b"
    rf"|\((?P<test2>[^\n()]{{1,100}}?)\)?\s*\?\s*(?P<value2>{_VALUE})\s*:"
    rf"|(?P<test3>[^\n=]{{0,100}}={{2,3}}[^\n?]{{1,100}}?)\s*\?\s*(?P<value3>{_VALUE})\s*:"
)
_RESULT = re.compile(
    rf"(?:return|echo|yield|\w+\s*=)?\s*(?P<value>{_VALUE})\s*;?\s*(?:;;)?\s*\}}?,?$"
)
"""Matches the statement that follows a condition or an arm and gives its value."""

_INNERMOST = re.compile(r"[(\[{]([^()\[\]{}]{1,200})[)\]}]")
_NESTED = re.compile(rf"[(\[{{]\s*({_GROUP}\s*,\s*{_VALUE})\s*,?\s*[)\]}}]")

_JOINED = re.compile(
    r"[\[({]?\s*-?\d+(?:\.\d+)?(?:\s*[,;:|/_ -]\s*-?\d+(?:\.\d+)?){1,11}\s*[\])}]?"
)
"""Matches several numbers that are written as one string, such as the key of a table."""

_NUMBER = re.compile(r"(?<!\d)-?\d+(?:\.\d+)?")

Values = tuple[str, ...]


class HardCodedResult(NamedTuple):
    """Fixed inputs and the value that they choose."""

    statement: Statement
    inputs: Values
    value: Values


def expected_values(blocks: Iterable[CodeBlock]) -> frozenset[Values]:
    """Return the values of each assertion and of each row of data in tests, in their order."""
    found: set[Values] = set()
    for block in blocks:
        before = ""
        for statement in block.all_statements:
            texts = [*statement.rows, *_INNERMOST.findall(statement.text)]
            texts += _NESTED.findall(statement.text)
            if is_assertion(statement):
                # The call may be in the statement before, whose result the assertion looks at.
                texts += [statement.text, f"{before} {statement.text}"]
            found |= {_values(text) for text in texts}
            before = statement.text
    return frozenset(values for values in found if 1 < len(values) <= MAX_VALUES)


def find_hard_coded_results(
    old: Sequence[CodeBlock], new: Sequence[CodeBlock], expected: frozenset[Values]
) -> Iterator[HardCodedResult]:
    """Yield the answers that the new blocks of a source file give to tests.

    A function that already had answers is left alone. In code that did not exist before, only
    numbers count: a new table of names is what most changes add.
    """
    known = {block.name: block for block in old}
    for block in new:
        before = known.get(block.name) if block.name else None
        if before is not None and next(_answers(before.statements), None) is not None:
            continue
        known_texts = (
            {statement.text for statement in known[""].statements} if "" in known else set[str]()
        )
        added = [
            statement
            for statement in block.statements
            if block.name or statement.text not in known_texts
        ]
        answers = list(dict.fromkeys(_answers(added)))
        to_tests = [answer for answer in answers if _is_expected(answer, expected)]
        if before is None:
            to_tests = [finding for finding in to_tests if _is_numeric(finding)]
        if 2 * len(to_tests) < len(answers):
            to_tests = [finding for finding in to_tests if _is_whole_input(finding)]
        yield from to_tests


def _answers(statements: Sequence[Statement]) -> Iterator[HardCodedResult]:
    for number, statement in enumerate(statements):
        text = statement.text
        for start in range(0, len(text), MAX_TEXT):
            yield from _in_text(statement, text[start : start + 2 * MAX_TEXT])
        match = _CONDITION.match(text[:MAX_TEXT]) or _ARM.match(text[:MAX_TEXT])
        if match is None:
            continue
        own = match.groupdict().get("value")
        value = _values(own or _result_below(statements, number))
        inputs = _compared(match["test"], is_arm=match.re is _ARM)
        if inputs and len(value) == 1:
            yield HardCodedResult(statement, inputs, value)


def _result_below(statements: Sequence[Statement], number: int) -> str:
    """Return the value that the statements below a condition or an arm give; "" for none."""
    for index, statement in enumerate(statements[number + 1 : number + 1 + MAX_BODY]):
        if index and statement.indent <= statements[number].indent:
            break
        if result := _RESULT.match(statement.text[:MAX_TEXT]):
            return str(result["value"])
    return ""


def _in_text(statement: Statement, text: str) -> Iterator[HardCodedResult]:
    for rule in (_ROW, _PAIR, _SHELL_ARM):
        for match in rule.finditer(text):
            yield HardCodedResult(statement, _values(match["inputs"]), _values(match["value"]))
    for choice in _CHOICE.finditer(text):
        inputs = _compared(choice["test"] or choice["test2"] or choice["test3"] or "")
        value = _values(choice["value"] or choice["value2"] or choice["value3"])
        if inputs:
            yield HardCodedResult(statement, inputs, value)


def _compared(test: str, *, is_arm: bool = False) -> Values:
    """Return the values that a condition compares inputs with; those of an arm are its pattern."""
    compared = [value for match in _COMPARED.finditer(test) for value in _values(match["inputs"])]
    return tuple(compared) or (_values(test) if is_arm else ())


def _values(text: str) -> Values:
    values: list[str] = []
    for literal in _LITERAL.findall(text):
        value = literal.strip("\"'")
        if not value.startswith("$"):
            values += _NUMBER.findall(value) if _JOINED.fullmatch(value) else [value]
    return tuple(values)


def _is_expected(answer: HardCodedResult, expected: frozenset[Values]) -> bool:
    """Return True if a test has the inputs and the value, as its last or its first values.

    Text may follow them, which is the message of an assertion.
    """
    inputs, value = answer.inputs, answer.value
    if not (any(map(_is_telling, value)) and (len(inputs) > 1 or any(map(_is_telling, inputs)))):
        return False
    size = len(inputs) + len(value)
    for values in expected:
        end = len(values)
        while end > size and not _is_number(values[end - 1]):
            end -= 1
        if inputs + value in (values[-size:], values[end - size : end]):
            return True
        if values[:size] == value + inputs:
            return True
    return False


def _is_numeric(answer: HardCodedResult) -> bool:
    return all(map(_is_number, answer.inputs + answer.value))


def _is_whole_input(answer: HardCodedResult) -> bool:
    return len(answer.inputs) >= MIN_INPUT and _is_numeric(answer)


def _is_number(value: str) -> bool:
    return re.fullmatch(r"-?\d+(?:\.\d+)?", value) is not None


def _is_telling(value: str) -> bool:
    return value not in {"", "0", "1", "-1", "2", "0.0", "1.0"}
