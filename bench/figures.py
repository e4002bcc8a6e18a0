"""Numbers in what a benchmark prints: rows of Markdown tables, lines of JSON, `label: number`."""

import json
import math
import re
from collections.abc import Collection, Iterator, Sequence

_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
_LABELED = re.compile(r"(?P<label>\D[^|{]*?):\s+(?P<number>-?\d[\d,]*(?:\.\d+)?)\b")


def read_figures(text: str, keys: Collection[str]) -> dict[str, float]:
    """Return each number in the output of a benchmark, by `ROW: COLUMN`.

    keys: names of the columns, or of the members of JSON objects, whose values name the row. The
    first column of a table always does.
    """
    figures: dict[str, float] = {}
    headers: list[str] = []
    for line in text.splitlines():
        if line.startswith("|"):
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if set("".join(cells)) <= set("-: "):
                continue
            if not headers:
                headers = cells
                continue
            figures.update(_row(headers, cells, keys))
            continue
        headers = []
        if line.startswith("{"):
            figures.update(_object(line, keys))
        elif labeled := _LABELED.match(line):
            figures[labeled["label"].strip()] = parse_number(labeled["number"])
    return figures


def parse_number(text: str) -> float:
    """Return the number at the start of a text like `1,234.5 MB`, or NaN if there is none."""
    found = _NUMBER.match(text.strip("* "))
    return float(found[0].replace(",", "")) if found else math.nan


def _row(
    headers: Sequence[str], cells: Sequence[str], keys: Collection[str]
) -> Iterator[tuple[str, float]]:
    pairs = list(zip(headers, cells, strict=False))
    named = {0, *(place for place, header in enumerate(headers) if header in keys)}
    row = ", ".join(
        cell if math.isnan(parse_number(cell)) else f"{cell} {header}"
        for place, (header, cell) in enumerate(pairs)
        if place in named
    )
    for place, (header, cell) in enumerate(pairs):
        number = parse_number(cell)
        if place not in named and not math.isnan(number):
            yield f"{row}: {header}", number


def _object(line: str, keys: Collection[str]) -> Iterator[tuple[str, float]]:
    try:
        data = json.loads(line)
    except ValueError:
        return
    row = ", ".join(
        str(value) if isinstance(value, str) else f"{value} {name}"
        for name, value in data.items()
        if name in keys
    )
    for name, value in data.items():
        if name not in keys and isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{row}: {name}" if row else name, float(value)
