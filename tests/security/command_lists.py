"""The labeled lists of commands, read; and how they are cut into the half that the rules were
written with and the half that was held back."""

import hashlib
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parent / "commands"
_CHOICE = re.compile(r"⟦(.*?)⟧")


def commands(name: str) -> list[str]:
    """The commands of a list, each once."""
    return list(dict.fromkeys(_read((FOLDER / f"{name}.txt").read_text())))


def is_held_back(command: str) -> bool:
    """Return True if the command is in the half that was held back while the rules were written."""
    return hashlib.sha256(command.encode()).digest()[0] % 2 == 1


def _read(text: str) -> Iterator[str]:
    block: list[str] | None = None
    for line in text.splitlines():
        if line == "<<<":
            block = []
        elif line == ">>>" and block is not None:
            yield "\n".join(block)
            block = None
        elif block is not None:
            block.append(line)
        elif line and not line.startswith("#"):
            yield from _choices(line)


def _choices(line: str) -> Iterator[str]:
    parts = _CHOICE.split(line)
    options = [part.split("¦") if index % 2 else [part] for index, part in enumerate(parts)]
    for chosen in itertools.product(*options):
        yield "".join(chosen)
