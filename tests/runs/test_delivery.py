"""The course of one delivery: a whole run, because only calls show which function calls which."""

import re
import sys
import threading
from pathlib import Path
from types import FrameType

from tests.parts.runs import finish
from tests.runs.scenario import FIX, SELDOM, SUMMARY, Scenario

ROOT = Path(__file__).parents[2]
PACKAGE = str(ROOT / "resolver")
HOP = re.compile(r"^\d+\. `resolver\.([\w.]+)` `([\w.]+)`")


def listed_hops() -> list[tuple[str, str]]:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    section = page.partition("<!-- hops -->")[2].partition("<!-- end of hops -->")[0]
    return [match.groups() for match in map(HOP.match, section.splitlines()) if match]  # type: ignore[misc]


class CallRecorder:
    """Records each function of the package when it is first called, in any thread."""

    def __init__(self) -> None:
        self.called: dict[tuple[str, str], None] = {}

    def __enter__(self) -> "CallRecorder":
        threading.setprofile(self._record)
        sys.setprofile(self._record)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]

    def _record(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            module = frame.f_code.co_filename[len(PACKAGE) + 1 : -len(".py")].replace("/", ".")
            self.called.setdefault((module, frame.f_code.co_qualname))


def test_a_mention_passes_through_the_listed_functions(scenario: Scenario) -> None:
    scenario.endpoint.script(FIX, finish(SUMMARY))
    event = scenario.github.event_issue_comment(scenario.mention())
    with CallRecorder() as calls:
        done = scenario.action(event, **SELDOM)
    assert done.exit_code == 0, done.stdout + done.stderr
    listed = listed_hops()
    assert len(listed) > 20
    assert [hop for hop in calls.called if hop in listed] == listed
