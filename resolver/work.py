"""The middle of the straight line: sandbox started, agent run, change taken out."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from resolver import __version__
from resolver.agents.offer import Offer
from resolver.agents.task_prompt import render_task
from resolver.assembly import (
    Host,
    model_name,
    open_agent,
    open_delegates,
    open_environment,
    open_models,
    open_runtime,
    runtime_kind,
)
from resolver.controller.control import Control
from resolver.controller.controller import AgentController, Executor
from resolver.controller.delegation import reply_in
from resolver.controller.replay import (
    MOST_REPORTED,
    ROOT_STAGE,
    Difference,
    ReplayCheck,
    roots_of,
)
from resolver.events.actions import Message
from resolver.events.base import Source
from resolver.events.lifecycle import RunStarted, SystemPrompt
from resolver.events.log import Event
from resolver.events.state import State
from resolver.events.stream import Clock
from resolver.memory.condenser import WindowCondenser
from resolver.memory.instructions import read_instructions
from resolver.model import CheckedCommand, Outcome, Patch, RunState, Task
from resolver.rebuild import Recorded, Relocated, redo
from resolver.runlog import RunLog
from resolver.runtime.connections import connections_told
from resolver.runtime.runtime import Runtime
from resolver.security.redaction import Redactor
from resolver.settings import Settings
from resolver.setup.environment import set_up
from resolver.workspace.workspace import Workspace

BUNDLE_FACTOR = 4
"""A bundle may be this much larger than the largest patch that would be published."""


@dataclass(frozen=True)
class Job:
    """What the middle of the line needs of its beginning.

    control: where people's requests to the run at work arrive.
    """

    run: str
    task: Task
    settings: Settings
    recording: Sequence[Event]
    host: Host
    folder: Path
    now: Clock
    control: Control


@dataclass(frozen=True)
class Worked:
    """What came of it."""

    outcome: Outcome
    patch: Patch
    commands: tuple[CheckedCommand, ...]
    left_out: tuple[str, ...] = ()
    """Paths of the sandbox that could not be taken; they are in the patch as they were before."""
    warnings: tuple[str, ...] = ()
    """What a person should know of the environment the agent worked in."""


@dataclass(frozen=True)
class Opened:
    """A sandbox that is ready for the agent, and what a person should know of it."""

    runtime: Runtime
    warnings: tuple[str, ...]


def work(job: Job, workspace: Workspace, log: RunLog) -> Worked:
    """Run the agent on a checkout of the workspace's base. The sandbox is gone when it returns.

    A log that has events already is gone on with: what it says was done in the sandbox is done
    again first, and one whose work has ended only gives its change once more.
    """
    kind = runtime_kind(job.settings, job.host)
    earlier = tuple(log.state.events)
    opening = log.opening or _begin(job, workspace, kind, log)
    with open_sandbox(job, kind, workspace, log) as opened:
        runtime = opened.runtime
        job.control.interrupt_with(runtime.interrupt)
        executor = rebuild(earlier, runtime, log) if earlier else runtime
        outcome = _run_agent(job, opening, workspace, executor, runtime, log)
        if outcome.state is RunState.STOPPED:
            runtime.interrupt()
        patch, left_out = _take_change(job, workspace, runtime, log)
    return Worked(outcome, patch, tuple(log.state.commands), left_out, opened.warnings)


def _begin(job: Job, workspace: Workspace, kind: str, log: RunLog) -> RunStarted:
    return log.stream.add(
        RunStarted(
            run=job.run,
            version=__version__,
            task=job.task,
            base=workspace.base,
            agent=job.settings.agent,
            model=model_name(job.settings),
            runtime=kind,
            limits=job.settings.limits,
        )
    )


@contextmanager
def open_sandbox(job: Job, kind: str, workspace: Workspace, log: RunLog) -> Iterator[Opened]:
    """A sandbox with the workspace's base checked out and the project's environment set up. It is
    gone when the context is left."""
    started = time.monotonic()
    environment = open_environment(job.settings, kind, workspace, job.host)
    sandbox = open_runtime(job.settings, kind, job.run, job.host, environment.image)
    with connections_told(log.stream, sandbox.take_connections), sandbox as runtime:
        log.stage("sandbox", runtime.isolation, time.monotonic() - started)
        started = time.monotonic()
        runtime.checkout(workspace.git_dir_tar(), workspace.base, workspace.branch)
        log.stage(ROOT_STAGE, runtime.root, time.monotonic() - started)
        seconds = job.settings.setup_timeout
        made = set_up(environment, runtime, log.stream, log.state, workspace.base, seconds)
        yield Opened(runtime, made.warnings)


def rebuild(earlier: Sequence[Event], runtime: Runtime, log: RunLog) -> Relocated:
    """Do again what the log says was done; the executor to go on with. Differences are told in
    the log, which gets no second copy of anything else."""
    started = time.monotonic()
    reported = 0

    def report(_: Recorded, differs: Difference) -> None:
        nonlocal reported
        reported += 1
        if reported <= MOST_REPORTED:
            log.stream.add(differs.event())

    roots = roots_of(earlier)
    executor = Relocated(runtime, roots, runtime.root)
    done = redo(earlier, executor, (*roots, runtime.root), told=report)
    detail = f"{done.actions} action{'' if done.actions == 1 else 's'} done again"
    if done.differences:
        detail += f", {len(done.differences)} with another result"
    if done.skipped:
        detail += f", {len(done.skipped)} that reach outside left out"
    log.stage("rebuilt", detail, time.monotonic() - started)
    return executor


def _run_agent(
    job: Job,
    opening: RunStarted,
    workspace: Workspace,
    executor: Executor,
    runtime: Runtime,
    log: RunLog,
) -> Outcome:
    settings, recording = _as_begun(job, opening, log.state)
    redactor = Redactor((*settings.secrets, *job.host.secrets))
    model_on = open_models(settings, recording, log.state, job.run, redactor.redact_text)
    offer = Offer(delegates=True, browser=runtime.browser)
    agent = open_agent(settings, model_on(log.stream), offer)
    controller = AgentController(
        agent=agent,
        stream=log.stream,
        state=log.state,
        executor=executor,
        condenser=WindowCondenser(),
        now=job.now,
        control=job.control,
        most=settings.ceiling,
        delegates=open_delegates(settings, model_on, offer),
    )
    if job.recording and recording is job.recording:
        check = ReplayCheck(job.recording, opening, log.stream, runtime.root)
        log.stream.subscribe("replay", check)
    if not any(isinstance(e, SystemPrompt) for e in log.state.events):
        log.stream.add(agent.system_prompt())
    if not any(isinstance(e, Message) and e.source is Source.USER for e in log.state.events):
        instructions = read_instructions(workspace.read)
        reachable = settings.allow_list.described
        prompt = render_task(job.task, workspace.base, runtime.root, instructions, reachable)
        log.stream.add(Message(content=prompt, source=Source.USER))
    return controller.run()


def _as_begun(job: Job, opening: RunStarted, state: State) -> tuple[Settings, Sequence[Event]]:
    """The settings with the agent and the dialect that the log was begun with, and the recording
    without the replies that the log has already."""
    prompt = next((e for e in state.events if isinstance(e, SystemPrompt)), None)
    given = sum(reply_in(event) is not None for event in state.events)
    if prompt is None:
        return job.settings, job.recording
    begun = {"agent": opening.agent, "dialect": prompt.dialect}
    left: list[Event] = []
    for event in job.recording:
        if given and reply_in(event) is not None:
            given -= 1
        else:
            left.append(event)
    return job.settings.model_copy(update=begun), left


def _take_change(
    job: Job, workspace: Workspace, runtime: Runtime, log: RunLog
) -> tuple[Patch, tuple[str, ...]]:
    """The change as git objects, checked; kept whatever the agent's end was. With the paths that
    the sandbox could not give."""
    started = time.monotonic()
    limit = BUNDLE_FACTOR * job.settings.max_patch_bytes
    change = runtime.export_change(workspace.base, limit)
    bundle = None
    if change["bundle"] is not None:
        bundle = job.folder / "change.bundle"
        runtime.fetch(change["bundle"], bundle, limit)
    patch = workspace.receive(bundle, change["commit"], change["tree"])
    files = f"{len(patch.files)} file{'' if len(patch.files) == 1 else 's'} changed"
    left_out = tuple(change["left_out"])
    if left_out:
        files += f", {len(left_out)} left out"
    log.stage("change", files, time.monotonic() - started)
    return patch, left_out
