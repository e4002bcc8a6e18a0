"""Server-sent events of a run in progress: one reader for all viewers, resumption, slow viewers."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from resolver.entrypoints.webhook.live_runs import (
    MAX_QUEUED_UPDATES,
    RELOAD,
    LiveRuns,
    TooManyViewersError,
    Viewer,
)
from resolver.entrypoints.webhook.log_window import (
    MAX_SHOWN_BYTES,
    WINDOW_STEP,
    LogWindow,
    window_start,
)
from resolver.entrypoints.webhook.update_stream import UpdateStream
from resolver.events import observations as o
from resolver.events.base import EventBase
from resolver.events.log import dump_line
from resolver.storage.run_folders import LocalRunFolders
from resolver.trace.html import render_update
from resolver.trace.steps import build_view
from tests.trace.sample import HOSTILE, hostile, numbered, realistic

RUN = "20260304-093000-0a1b2c"
QUICK = 0.001


def run_alone(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run in a thread of its own: another test may have left an event loop running in this one."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, coroutine).result()


class CountedFolders(LocalRunFolders):
    """Counts how often the folder of a run is looked up."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.count = 0

    def folder_of(self, run: str) -> Path | None:
        self.count += 1
        return super().folder_of(run)


class Run:
    """The log of a run in progress."""

    def __init__(self, root: Path) -> None:
        self.folder = root / RUN
        self.folder.mkdir()
        self.folders = CountedFolders(root)
        self.live = LiveRuns(self.folders, QUICK)

    def append(self, *events: EventBase) -> None:
        with (self.folder / "events.jsonl").open("a") as file:
            file.write("".join(f"{dump_line(event)}\n" for event in events))

    def end(self) -> None:
        (self.folder / "outcome.json").write_text("{}")


def steps_in(update: bytes | str) -> list[int]:
    text = update.decode() if isinstance(update, bytes) else update
    return [int(number) for number in re.findall(r'<li class="step [^"]*" id="step-(\d+)"', text)]


def id_of(update: bytes) -> int:
    found = re.search(rb"^id: (\d+)$", update, re.MULTILINE)
    assert found is not None
    return int(found[1])


async def taken(viewer: Viewer) -> bytes:
    update = await asyncio.wait_for(viewer.take(), 60)
    assert update is not None
    return update


async def taken_until(viewer: Viewer, event_id: int) -> bytes:
    """The updates until that of an event: a reader may come between two lines."""
    updates = await taken(viewer)
    while id_of(updates[updates.rindex(b"\nid: ") :]) < event_id:
        updates += await taken(viewer)
    return updates


def test_an_update_has_the_new_and_the_changed_steps_only() -> None:
    events = realistic()
    position = next(n for n, e in enumerate(events) if isinstance(e, o.CmdOutput))
    earlier, view = build_view(events[:position]), build_view(events)
    shown = [entry.number for entry in earlier.entries if hasattr(entry, "number")]
    update = render_update(earlier, view, ["A notice."])
    assert steps_in(update)[0] == shown[-1], "the step got its output"
    assert steps_in(render_update(view, view)) == []
    assert '<p class="notice">A notice.</p>' in update
    assert steps_in(render_update(build_view([]), view)) == [
        entry.number for entry in view.entries if hasattr(entry, "number")
    ]


def test_hostile_texts_stay_texts_in_an_update() -> None:
    events = [event for text in HOSTILE for event in hostile(text)]
    update = render_update(build_view([]), build_view(events))
    assert "&lt;script&gt;" in update
    assert not re.search(r"<(script|iframe|object|embed|form|base|link)\b|\bon\w+=\"", update)


def test_viewers_share_one_reader_and_resume_after_the_last_event_that_they_have(
    tmp_path: Path,
) -> None:
    run, events = Run(tmp_path), realistic()
    run.append(*events[:6])

    async def watched() -> None:
        async with asyncio.timeout(60):
            viewers = []
            contexts = [run.live.watch(RUN, 5, 0) for _ in range(50)]
            for context in contexts:
                viewers.append(await context.__aenter__())
            assert run.folders.count < 50, "joining does not read the log for each viewer"
            run.append(*events[6:10])
            updates = {await taken_until(viewer, events[9].id) for viewer in viewers}
            assert len(updates) == 1, "what is new is rendered once"
            # One that was away gets everything since its last event, one with nothing gets all.
            async with run.live.watch(RUN, 7, 0) as late, run.live.watch(RUN, -1, 0) as new:
                since, everything = await taken(late), await taken(new)
            assert id_of(since) == id_of(everything) == events[9].id
            assert set(steps_in(since)) <= set(steps_in(everything))
            assert len(steps_in(everything)) == max(steps_in(everything))
            # Everything that follows comes before the end, which loads the page again.
            run.append(*events[10:])
            run.end()
            received = []
            while (update := await viewers[0].take()) is not None:
                received.append(update)
            assert received[-1] == RELOAD
            for context in contexts:
                await context.__aexit__(None, None, None)

    run_alone(watched())


def test_the_reader_ends_with_its_last_viewer(tmp_path: Path) -> None:
    run = Run(tmp_path)

    async def watched() -> None:
        async with asyncio.timeout(60):
            async with run.live.watch(RUN, -1, 0):
                assert run.live.followed == 1
            while run.live.followed:
                await asyncio.sleep(0)

    run_alone(watched())


def test_a_page_that_shows_another_part_of_the_log_is_loaded_again(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.append(*realistic())

    async def watched() -> None:
        async with run.live.watch(RUN, 3, WINDOW_STEP) as viewer:
            assert await taken(viewer) == RELOAD and await viewer.take() is None
        run.end()
        async with run.live.watch(RUN, 10**12, 0) as viewer:
            assert await taken(viewer) == RELOAD and await viewer.take() is None

    run_alone(watched())


def test_a_viewer_that_does_not_keep_up_is_cut() -> None:
    async def watched() -> None:
        viewer = Viewer()
        for number in range(MAX_QUEUED_UPDATES):
            viewer.put(b"%d" % number)
        assert not viewer.cut.is_set()
        viewer.put(b"one more")
        viewer.put(b"and another")
        assert viewer.cut.is_set() and await viewer.take() is None

    run_alone(watched())


Message = dict[str, Any]


async def streamed(stream: UpdateStream, send: Callable[[Message], Awaitable[None]]) -> None:
    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    await stream({"type": "http"}, receive, send)


def test_the_connection_of_a_viewer_that_takes_nothing_is_closed(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.append(*realistic()[:6])

    async def watched() -> None:
        blocked = asyncio.Event()
        stream = UpdateStream(run.live, RUN, 5, 0, {}, cut_seconds=QUICK)

        async def send(message: Message) -> None:
            if message["type"] == "http.response.body":
                blocked.set()
                await asyncio.Event().wait()

        async with asyncio.timeout(60):
            sending = asyncio.create_task(streamed(stream, send))
            await blocked.wait()
            # Another viewer has got each update, so that each is one of its own.
            async with run.live.watch(RUN, 5, 0) as other:
                for event in realistic()[6 : 7 + MAX_QUEUED_UPDATES]:
                    run.append(event)
                    await taken(other)
            await sending
        assert run.live.watched == 0

    run_alone(watched())


def test_too_many_viewers_are_refused(tmp_path: Path) -> None:
    run = Run(tmp_path)
    live = LiveRuns(run.folders, QUICK, max_viewers=1)
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def watched() -> None:
        async with live.watch(RUN, -1, 0):
            await streamed(UpdateStream(live, RUN, -1, 0, {}), send)
            try:
                async with live.watch(RUN, -1, 0):
                    raise AssertionError
            except TooManyViewersError:
                pass
        async with live.watch(RUN, -1, 0):
            pass

    run_alone(watched())
    assert sent[0]["status"] == 503 and (b"retry-after", b"10") in sent[0]["headers"]


def test_a_log_is_read_as_it_grows_and_read_again_when_it_is_replaced(tmp_path: Path) -> None:
    run, events = Run(tmp_path), realistic()
    log = run.folder / "events.jsonl"
    window = LogWindow(log)
    assert not window.read() and window.last_id == -1
    run.append(*events[:3])
    with log.open("a") as file:
        file.write('{"half": ')
    assert window.read() and window.last_id == events[2].id and window.unread == 0
    assert not window.read()
    with log.open("a") as file:
        file.write('"a line"}\n')
    assert window.read() and window.unread == 1
    version = window.version
    log.write_text(f"{dump_line(events[0])}\n")
    assert window.read() and window.version == version + 1
    assert window.last_id == events[0].id and window.unread == 0


def test_the_shown_part_of_a_long_log_moves_in_steps(tmp_path: Path) -> None:
    assert window_start(MAX_SHOWN_BYTES) == 0
    assert window_start(MAX_SHOWN_BYTES + WINDOW_STEP - 1) == 0
    assert window_start(MAX_SHOWN_BYTES + WINDOW_STEP) == WINDOW_STEP
    run = Run(tmp_path)
    first, *_ = realistic()
    output = o.Null(content="x" * 100_000)
    run.append(*numbered([first, *[output] * 14]))
    window = LogWindow(run.folder / "events.jsonl")
    assert window.read() and window.start == 0 and len(window.events) == 15
    last = output.model_copy(update={"id": 15})
    run.append(last)
    assert window.read() and window.start == WINDOW_STEP and window.version == 1
    assert window.events[0].id == 0 and window.last_id == 15
    assert 0 < window.skipped < 700_000 and len(window.events) < 15
