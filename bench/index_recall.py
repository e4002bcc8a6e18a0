"""How many of the definitions that Universal Ctags finds are in the code index.

    python bench/index_recall.py LANGUAGE FOLDER [LANGUAGE FOLDER ...]

A definition is found when the index has one of the same name in the same file whose lines hold the
line that ctags names. What the index does not hold doesn't count: variables of JavaScript and
Python, fields, enumerators, modules. Nor does what ctags makes up: names of anonymous functions,
objects of data that it takes for classes. A function at a computed name (`app[method] = function`)
has the object's name there.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from resolver.code_index.grammars import syntax_of
from resolver.code_index.source import read_source

KINDS = {
    "JavaScript": {"function", "class", "method", "generator", "getter", "setter"},
    "Python": {"class", "function", "member"},
    "Rust": {
        "struct", "enum", "interface", "function", "method", "macro", "typedef", "constant",
        "variable",
    },
    "C": {"function", "macro", "struct", "union", "enum", "typedef"},
}  # fmt: skip
"""Those of ctags that are compared."""

MAX_SHOWN = 25


def main() -> None:
    print("| sources | files | definitions | found | recall |")
    print("|---|--:|--:|--:|--:|")
    arguments = sys.argv[1:]
    missed: list[str] = []
    for language, folder in zip(arguments[::2], arguments[1::2], strict=True):
        print(measure(language, Path(folder), missed), flush=True)
    for line in missed[:MAX_SHOWN]:
        print(line, file=sys.stderr)


def measure(language: str, folder: Path, missed: list[str]) -> str:
    indexed: dict[str, dict[str, list[range]]] = {}
    tags = located = 0
    kinds: Counter[str] = Counter()
    for tag in read_tags(language, folder):
        path = tag["path"]
        if path not in indexed:
            indexed[path] = index_of(folder / path)
        if tag["kind"] not in KINDS[language] or is_made_up(tag):
            continue
        tags += 1
        ranges = indexed[path].get(tag["name"], [])
        if any(tag["line"] in lines for lines in ranges):
            located += 1
        else:
            kinds[tag["kind"]] += 1
            missed.append(f"{path}:{tag['line']}: {tag['kind']} {tag['name']}")
    print(f"missed in {folder.name}: {dict(kinds)}", file=sys.stderr)
    recall = located / tags if tags else 1.0
    return f"| {language}, {folder.name} | {len(indexed)} | {tags} | {located} | {recall:.1%} |"


def is_made_up(tag: dict[str, Any]) -> bool:
    if tag["name"].startswith(("AnonymousFunction", "AnonymousClass", "__anon")):
        return True
    line = tag.get("pattern", "")
    is_class = tag["language"] == "JavaScript" and tag["kind"] == "class"
    return is_class and not any(word in line for word in ("class", "function", "=>"))


def read_tags(language: str, folder: Path) -> Iterator[dict[str, Any]]:
    command = ["ctags", f"--languages={language}", "--map-C=+.h", "--sort=no", "--fields=+nKl"]
    command += ["--output-format=json", "-R", "-f", "-", "."]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    for line in done.stdout.splitlines():
        tag = json.loads(line)
        if tag.get("_type") == "tag" and syntax_of(tag["path"]) is not None:
            yield tag


def index_of(file: Path) -> dict[str, list[range]]:
    """The lines of each name that the index has of the file."""
    syntax = syntax_of(file.name)
    assert syntax is not None
    source = read_source(file.name, file.read_bytes(), syntax)
    names: dict[str, list[range]] = {}
    for entity in source.entities:
        lines = range(entity.start, entity.end + 1)
        names.setdefault(entity.short_name, []).append(lines)
        if entity.short_name.startswith("["):
            names.setdefault(entity.name.split(".")[-2], []).append(lines)
    return names


if __name__ == "__main__":
    main()
