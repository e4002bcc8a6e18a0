"""Compares the definitions that the code index finds with those of Universal Ctags.

Usage: python -m bench.code_recall FOLDER...
"""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from resolver.code_index.answers import Definition
from resolver.code_index.languages import language_of
from resolver.code_index.source import read_source

LANGUAGES = "Python,JavaScript,Go,Rust,C,C++"
KINDS = {
    "alias", "class", "enum", "func", "function", "generator", "interface", "macro", "method",
    "struct", "trait", "type", "typedef", "union",
}  # fmt: skip
MAX_BYTES = 1024 * 1024


def measure_recall(folder: Path) -> tuple[int, int]:
    """Return how many of the definitions of ctags the index has, and their number."""
    command = ["ctags", "--output-format=json", "--fields=+nK", f"--languages={LANGUAGES}"]
    output = subprocess.run(
        [*command, "-R", "-f", "-", str(folder)], check=True, capture_output=True, text=True
    ).stdout
    tags = defaultdict(list)
    for line in output.split("\n")[:-1]:
        tag = json.loads(line)
        if tag["kind"] in KINDS and not tag["name"].lower().startswith(("__anon", "anonymous")):
            tags[tag["path"]].append(tag)
    found = 0
    for path, expected in tags.items():
        language, content = language_of(path), Path(path).read_bytes()
        entities: dict[str, list[Definition]] = defaultdict(list)
        if language and len(content) < MAX_BYTES:
            for entity in read_source(content, language).definitions:
                entities[entity.name.rpartition(".")[2]].append(entity)
        found += sum(
            any(e.start - 3 <= tag["line"] <= e.end for e in entities[tag["name"]])
            for tag in expected
        )
    return found, sum(map(len, tags.values()))


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        hits, total = measure_recall(Path(argument))
        print(f"{argument}: {hits} of {total} ({100 * hits / max(1, total):.1f} %)")
