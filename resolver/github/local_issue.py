"""Reads the issue of a run on a checkout of this machine: a file or a text, without a forge."""

from datetime import datetime
from pathlib import Path

from resolver.errors import UsageError
from resolver.github.text.hidden_text import strip_hidden
from resolver.github.text.markdown import shorten_text
from resolver.models.run import Actor, Task, Trigger, TriggerKind

MAX_ISSUE_FILE = 1_000_000
"""Maximum size of an issue file in bytes; a larger file is probably a mistake."""


def local_trigger(repository: Path, *, run: str, login: str, at: datetime) -> Trigger:
    """Return the trigger for work on a checkout. Its key is the run's id: every request is new."""
    return Trigger(
        key=f"local:{run}",
        kind=TriggerKind.LOCAL,
        repository=str(repository),
        actor=Actor(login=login),
        at=at,
    )


def read_issue_file(path: Path, trigger: Trigger, base_branch: str) -> Task:
    """Return the task from an issue file.

    The first line that is not empty is the title (`# Title` or plain text), the rest is the body.
    Raises UsageError if the file cannot be read or has no title.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}", "give an issue file with --issue") from None
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder", "give a file with --issue") from None
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}", "check the file") from None
    return parse_issue(decode_issue(data, str(path)), str(path), trigger, base_branch)


def decode_issue(data: bytes, name: str) -> str:
    """Return the text of an issue. name: its file, for messages. Raises UsageError."""
    if len(data) > MAX_ISSUE_FILE:
        raise UsageError(f"{name} is larger than {MAX_ISSUE_FILE:,} bytes", "shorten it")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{name} is not UTF-8 text", "write the issue as text") from None
    if "\0" in text:
        raise UsageError(f"{name} is a binary file", "write the issue as text")
    return text


def parse_issue(text: str, name: str, trigger: Trigger, base_branch: str) -> Task:
    """Return the task from the text of an issue. Raises UsageError if it has no title."""
    cleaned = strip_hidden(text)
    lines = cleaned.text.strip().splitlines()
    title = lines[0].lstrip("#").strip() if lines else ""
    if not title:
        raise UsageError(f"{name} has no title", "write the issue's title on its first line")
    return Task(
        trigger=trigger,
        title=shorten_text(title, 256),
        body="\n".join(lines[1:]).strip(),
        author=trigger.actor.login,
        left_out=(f"hidden in the issue: {', '.join(cleaned.removed)}",) if cleaned.removed else (),
        base_branch=base_branch,
        source=trigger.repository,
    )
