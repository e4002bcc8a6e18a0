"""The middle of the straight line: sandbox started, agent run, change taken out."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from resolver import __version__
from resolver.agents.task_prompt import render_task
from resolver.assembly import Host, model_name, open_agent, open_model, open_runtime, runtime_kind
from resolver.controller.controller import AgentController
from resolver.controller.replay import ReplayCheck
from resolver.events.actions import Message
from resolver.events.base import Source
from resolver.events.lifecycle import RunStarted
from resolver.events.log import Event
from resolver.events.stream import Clock
from resolver.memory.condenser import WindowCondenser
from resolver.memory.instructions import read_instructions
from resolver.model import CheckedCommand, Outcome, Patch, RunState, Task
from resolver.runlog import RunLog
from resolver.runtime.runtime import Runtime
from resolver.settings import Settings
from resolver.workspace.workspace import Workspace

BUNDLE_FACTOR = 4
"""A bundle may be this much larger than the largest patch that would be published."""


@dataclass(frozen=True)
class Job:
    """What the middle of the line needs of its beginning."""

    run: str
    task: Task
    settings: Settings
    recording: Sequence[Event]
    host: Host
    folder: Path
    now: Clock


@dataclass(frozen=True)
class Worked:
    """What came of it."""

    outcome: Outcome
    patch: Patch
    commands: tuple[CheckedCommand, ...]


def work(job: Job, workspace: Workspace, log: RunLog) -> Worked:
    """Run the agent on a checkout of the workspace's base. The sandbox is gone when it returns."""
    kind = runtime_kind(job.settings, job.host)
    opening = log.stream.add(
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
    started = time.monotonic()
    with open_runtime(job.settings, kind, job.run, job.host) as runtime:
        runtime.checkout(workspace.git_dir_tar(), workspace.base, workspace.branch)
        log.stage("sandbox", runtime.isolation, time.monotonic() - started)
        outcome = _run_agent(job, opening, workspace, runtime, log)
        if outcome.state is RunState.STOPPED:
            runtime.interrupt()
        patch = _take_change(job, workspace, runtime, log)
    return Worked(outcome, patch, tuple(log.state.commands))


def _run_agent(
    job: Job, opening: RunStarted, workspace: Workspace, runtime: Runtime, log: RunLog
) -> Outcome:
    model = open_model(job.settings, job.recording, log.stream)
    agent = open_agent(job.settings, model)
    controller = AgentController(
        agent=agent,
        stream=log.stream,
        state=log.state,
        executor=runtime,
        condenser=WindowCondenser(),
        limits=job.settings.limits,
        now=job.now,
    )
    if job.recording:
        check = ReplayCheck(job.recording, opening, log.stream, runtime.root)
        log.stream.subscribe("replay", check)
    log.stream.add(agent.system_prompt())
    instructions = read_instructions(workspace.read)
    prompt = render_task(job.task, workspace.base, runtime.root, instructions)
    log.stream.add(Message(content=prompt, source=Source.USER))
    return controller.run()


def _take_change(job: Job, workspace: Workspace, runtime: Runtime, log: RunLog) -> Patch:
    """The change as git objects, checked; kept whatever the agent's end was."""
    started = time.monotonic()
    change = runtime.export_change(workspace.base)
    bundle = None
    if change["bundle"] is not None:
        bundle = job.folder / "change.bundle"
        limit = BUNDLE_FACTOR * job.settings.max_patch_bytes
        runtime.fetch(change["bundle"], bundle, limit)
    patch = workspace.receive(bundle, change["commit"], change["tree"])
    files = f"{len(patch.files)} file{'' if len(patch.files) == 1 else 's'} changed"
    log.stage("change", files, time.monotonic() - started)
    return patch
