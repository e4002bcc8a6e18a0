"""The file with the settings of owners is read again when it changes."""

import logging
import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from resolver.config.settings import load_settings
from resolver.entrypoints.webhook.owners_file import MIN_AGE_SECONDS, LearnSecret, OwnersFile
from resolver.errors import UsageError
from resolver.events.stream import utc_now
from resolver.security.redaction import IssuedTokens, Redactor

ENVIRONMENT = {"LLM_MODEL": "openai/common", "LLM_API_KEY": "key-of-the-server"}
FIRST = "octo: {api_key: first-key-of-octo, max_budget: 1}\n"
SECOND = "octo: {api_key: second-key-of-octo, max_budget: 2}\nother: {max_budget: 3}\n"


@dataclass
class Written:
    """A file of owners, and the server that reads it. time: seconds since 1970."""

    path: Path
    time: float = 1_000_000.0
    secrets: list[str] = field(default_factory=list)

    def write(self, content: str) -> None:
        """Write the file at this moment, as an editor that replaces it does."""
        new = self.path.with_suffix(".new")
        new.write_text(content)
        os.utime(new, (self.time, self.time))
        new.replace(self.path)

    def open(self, learn_secret: LearnSecret | None = None) -> OwnersFile:
        environment = {**ENVIRONMENT, "RESOLVER_OWNERS_FILE": str(self.path)}
        settings = load_settings({}, environment)
        learn_secret = learn_secret or self.secrets.append
        return OwnersFile(settings, {}, environment, learn_secret, lambda: self.time)


@pytest.fixture
def written(tmp_path: Path) -> Written:
    file = Written(tmp_path / "owners.yml")
    file.write(FIRST)
    return file


def budgets(owners: OwnersFile) -> list[float]:
    return [owners.settings_for(f"{owner}/calc").max_budget for owner in ("octo", "other")]


def test_a_changed_file_holds_for_what_starts_afterwards(written: Written) -> None:
    owners = written.open()
    assert budgets(owners) == [1, 5]
    written.write(SECOND)
    written.time += MIN_AGE_SECONDS
    assert budgets(owners) == [2, 3]
    assert owners.current().options_for("octo/calc", {})["max_budget"] == 2
    assert {"first-key-of-octo", "second-key-of-octo"} <= set(written.secrets)


def test_a_file_that_is_being_written_is_not_read(written: Written) -> None:
    """An editor empties the file, and writes it in two parts."""
    owners = written.open()
    for content in ("", SECOND[:20], SECOND):
        written.time += MIN_AGE_SECONDS / 2
        written.write(content)
        assert budgets(owners) == [1, 5], content
    written.time += MIN_AGE_SECONDS
    assert budgets(owners) == [2, 3]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("octo: {max_budget: much, api_key: canary-key}\n", "--max-budget"),
        ("octo: {modell: x, api_key: canary-key}\n", "did you mean 'model'"),
        ("octo: {api_key: canary-key", "not YAML"),
        (None, "No such file"),
    ],
)
def test_a_fault_leaves_the_settings_and_is_logged_once(
    written: Written, caplog: pytest.LogCaptureFixture, content: str | None, fault: str
) -> None:
    owners = written.open()
    written.time += MIN_AGE_SECONDS
    if content is None:
        written.path.unlink()
    else:
        written.write(content)
    written.time += MIN_AGE_SECONDS
    with caplog.at_level(logging.INFO, "resolver"):
        for _ in range(3):
            assert budgets(owners) == [1, 5]
        [record] = caplog.records
        assert record.levelname == "ERROR" and fault in record.message
        assert "those before the change stay" in record.message
        assert "canary-key" not in caplog.text
        written.write(SECOND)
        written.time += MIN_AGE_SECONDS
        assert budgets(owners) == [2, 3], "the corrected file is used"
        assert "are used for runs that start now" in caplog.records[-1].message


def test_an_unchanged_file_is_read_once(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    owners = written.open()
    written.time += MIN_AGE_SECONDS

    def fail(_: str) -> None:
        raise AssertionError("it was read again")

    monkeypatch.setattr("resolver.entrypoints.webhook.owners_file.read_owner_settings", fail)
    assert budgets(owners) == [1, 5]


def test_a_server_does_not_start_with_a_faulty_file(written: Written) -> None:
    written.write("octo: {modell: x}\n")
    with pytest.raises(UsageError, match="did you mean 'model'"):
        written.open()


@pytest.mark.attack
def test_a_key_that_is_written_later_is_redacted(written: Written) -> None:
    """A key is written into the file while the server runs: it is redacted like the others."""
    issued = IssuedTokens()
    owners = written.open(lambda secret: issued.add(secret, None, utc_now()))
    redactor = Redactor([], issued)
    written.write(SECOND)
    written.time += MIN_AGE_SECONDS
    assert budgets(owners) == [2, 3]
    text = redactor.redact_text("first-key-of-octo and second-key-of-octo")
    assert text == "[redacted] and [redacted]", "active runs may still use the first"
