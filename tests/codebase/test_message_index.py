"""docs/how-to/troubleshooting.md lists messages that Resolver still writes."""

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/troubleshooting.md").read_text()
INDEXED = re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)


@cache
def written_texts() -> str:
    """Return the code and the templates, with strings that are written in parts joined."""
    code = "\n".join(path.read_text() for path in (ROOT / "resolver").rglob("*.py"))
    templates = "\n".join(path.read_text() for path in (ROOT / "prompts").rglob("*.j2"))
    return re.sub(r"\"\s*\n\s*f?\"", "", code) + templates.replace("**", "")


def is_written(message: str) -> bool:
    """Return True if each fixed part of a message is in the code or in a template."""
    return all(part.strip() in written_texts() for part in message.split("..."))


def test_each_message_of_the_index_is_one_that_resolver_writes() -> None:
    assert len(INDEXED) >= 45
    assert [message for message in INDEXED if not is_written(message)] == []


def test_each_message_is_listed_once() -> None:
    assert len(set(INDEXED)) == len(INDEXED)
