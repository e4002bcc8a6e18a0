"""The verify stage of a run: rounds, stops and what the log records."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from resolver.config.settings import MAX_CORRECTIONS, load_settings
from resolver.controller.control import Control, MessageToAgent, Stop
from resolver.errors import RunStopped
from resolver.events.lifecycle import RunStarted, VerificationCompleted
from resolver.events.run_log import RunLog
from resolver.models.run import FileChange, Patch, RunLimits
from resolver.models.verification import (
    CheckComparison,
    UnpreparedEnvironment,
    Verification,
)
from resolver.runs.verify import ChangeVerifier
from tests.github.reports import task, trigger
from tests.runs.plain_values import run_log
from tests.verification.scripted import result

CHANGED = FileChange(path="a.py", status="modified", old_mode="100644", new_mode="100644")
BROKEN = CheckComparison(
    name="pytest",
    command="pytest",
    scope="full",
    base=result(old="passed"),
    head=result(old="failed"),
    broken=("test_a.py::old",),
)
REGRESSION = Verification(verdict="not_verified", reason="regression", checks=(BROKEN,))
CHECKED = Verification(verdict="checked")


def patch(number: int = 1) -> Patch:
    return Patch(base="b" * 40, tree=str(number) * 40, files=(CHANGED,))


@pytest.fixture
def log(tmp_path: Path) -> Iterator[RunLog]:
    with run_log(tmp_path / "events.jsonl") as opened:
        opened.stream.add(
            RunStarted(
                run="r",
                version="1",
                task=task(trigger()),
                base="b" * 40,
                agent="A",
                model="m",
                runtime="local",
                limits=RunLimits(),
            )
        )
        yield opened


class Script:
    """Answers verifications one after the other, and counts them."""

    def __init__(self, *results: Verification) -> None:
        self.results: Sequence[Verification] = results
        self.count = 0

    def __call__(self, prepared: object, log: RunLog, patch: Patch) -> Verification:
        self.count += 1
        return self.results[min(self.count, len(self.results)) - 1]


def verifier(
    log: RunLog, script: Script, control: Control | None = None, **known: object
) -> ChangeVerifier:
    settings = load_settings({"model": "m", **known}, {})
    request = SimpleNamespace(run="r", control=control or Control())
    prepared: Any = SimpleNamespace(settings=settings, request=request)
    return ChangeVerifier(prepared, log, script)


def completed(log: RunLog) -> list[VerificationCompleted]:
    return [e for e in log.state.events if isinstance(e, VerificationCompleted)]


def test_the_agent_is_informed_a_limited_number_of_times(log: RunLog) -> None:
    made = verifier(log, Script(REGRESSION))
    words = [made.feedback(patch(number)) or "" for number in range(MAX_CORRECTIONS + 1)]
    sent = [True] * MAX_CORRECTIONS + [False]
    assert ["test_a.py::old" in message for message in words] == sent
    assert "assert 1 == 2" in words[0]
    assert made.conclude(patch(MAX_CORRECTIONS)).reason == "regression"
    assert [e.sent_to_agent for e in completed(log)] == sent


def test_another_process_continues_counting(log: RunLog) -> None:
    for number in range(MAX_CORRECTIONS):
        assert verifier(log, Script(REGRESSION)).feedback(patch(number))
    assert not verifier(log, Script(REGRESSION)).feedback(patch(MAX_CORRECTIONS))


def test_a_good_change_is_not_sent_back_and_is_verified_once(log: RunLog) -> None:
    script = Script(CHECKED)
    made = verifier(log, script)
    assert made.feedback(patch()) is None
    assert made.conclude(patch()) == CHECKED
    assert script.count == 1
    # A resumed run concludes again, which adds nothing to the log.
    verifier(log, script).conclude(patch())
    assert len(completed(log)) == 1


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("setup_failed", "executed on it again, and failed"),
        ("setup_timeout", "did not end in time"),
        ("no_setup", None),
        ("image", None),
    ],
)
def test_a_set_up_that_fails_with_the_change_goes_back_to_the_agent(
    log: RunLog, cause: str, words: str | None
) -> None:
    unprepared = UnpreparedEnvironment.model_validate(
        {"paths": ("requirements.txt",), "cause": cause, "detail": "no matching distribution"}
    )
    found = Verification(verdict="not_verified", reason="environment", unprepared=unprepared)
    made = verifier(log, Script(found))
    feedback = made.feedback(patch(1))
    assert (feedback is None) is (words is None)
    if words is not None and feedback is not None:
        assert words in feedback and "no matching distribution" in feedback
    assert made.conclude(patch(1)).reason == "environment"


@pytest.mark.parametrize("reason", ["former_behavior", "sandbox_error", "failed_at_both"])
def test_what_the_agent_cannot_correct_is_not_sent_back(log: RunLog, reason: str) -> None:
    found = Verification.model_validate({"verdict": "not_verified", "reason": reason})
    assert verifier(log, Script(found)).feedback(patch()) is None


def test_a_stop_ends_the_run_and_nothing_is_verified_after_it(log: RunLog) -> None:
    control, script = Control(), Script(REGRESSION)
    made = verifier(log, script, control)
    control.send(MessageToAgent("look at b.py too"))
    control.send(Stop(by="ada"))
    assert made.feedback(patch()) is None
    with pytest.raises(RunStopped, match="stopped by ada while its change was verified"):
        made.conclude(patch(2))
    assert script.count == 0
    assert control.take() == MessageToAgent("look at b.py too")
    assert not completed(log)


def test_without_verification_nothing_is_executed(log: RunLog) -> None:
    script = Script(CHECKED)
    assert verifier(log, script, verify=False).conclude(patch()).reason == "disabled"
    assert verifier(log, script).conclude(Patch(base="b", tree="t")).reason == "no_change"
    assert script.count == 0
    assert not completed(log)
