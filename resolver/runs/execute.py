"""The middle of the straight line: sandbox started, agent run, change taken out."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from resolver import __version__
from resolver.agents.available_tools import AvailableTools
from resolver.agents.definitions import AgentDefinition
from resolver.agents.registry import has_own_work, is_answering_agent, model_of
from resolver.agents.reviewer import REVIEWER
from resolver.agents.task_prompt import render_task
from resolver.code_index.host import index_action_handlers
from resolver.code_index.index import CodeIndex
from resolver.config.settings import Settings
from resolver.controller.control import Control
from resolver.controller.controller import AgentController, Executor
from resolver.controller.delegation import reply_in
from resolver.controller.outcome import derive_outcome
from resolver.controller.replay import (
    MOST_REPORTED,
    Difference,
    ReplayCheck,
)
from resolver.events.actions import Message, ReviewComment
from resolver.events.base import Source
from resolver.events.lifecycle import ROOT_STAGE, RunStarted, SystemPrompt, roots_of
from resolver.events.log import Event
from resolver.events.run_log import RunLog
from resolver.events.state import State
from resolver.events.stream import Clock
from resolver.git.policy import is_protected
from resolver.git.workspace import Workspace
from resolver.github.text.invisible import with_invisible_shown
from resolver.memory.notes import notes_of
from resolver.models.run import (
    CheckedCommand,
    ExportedChange,
    Outcome,
    Patch,
    RunLimits,
    RunState,
    Task,
)
from resolver.publishing.notes import NOTES_FILE, propose_notes
from resolver.publishing.review_comments import note_comment
from resolver.runs.resuming.rebuild import RecordedAction, RelocatedExecutor, reexecute
from resolver.runs.wiring.agents import open_agent, open_delegates
from resolver.runs.wiring.condensers import open_condensers
from resolver.runs.wiring.confirmation import ApprovalRequester, open_confirmation
from resolver.runs.wiring.knowledge import Knowledge
from resolver.runs.wiring.mcp import McpOfRun, open_mcp
from resolver.runs.wiring.model_check import check_run_model
from resolver.runs.wiring.models import model_name, open_models
from resolver.runs.wiring.sandbox import (
    RunHost,
    open_environment,
    open_runtime,
    runtime_kind,
)
from resolver.runtime.connections import record_connections
from resolver.runtime.environment.environment import set_up
from resolver.runtime.runtime import Runtime

BUNDLE_FACTOR = 4
"""A bundle may be this much larger than the largest patch that would be published."""


@dataclass(frozen=True)
class ExecutionRequest:
    """What the middle of the line needs of its beginning.

    control: where people's requests to the run at work arrive. most: what they can extend the
    limits to. agents: the repository's own. knowledge: what its agents are told beside the task.
    waiting: how a person is asked about an action.
    change: what an earlier attempt has taken out of the sandbox; with it the work is over.
    """

    run: str
    task: Task
    settings: Settings
    recording: Sequence[Event]
    host: RunHost
    folder: Path
    now: Clock
    control: Control
    most: RunLimits
    agents: tuple[AgentDefinition, ...] = ()
    knowledge: Knowledge = field(default_factory=Knowledge)
    waiting: ApprovalRequester = field(default_factory=ApprovalRequester)
    change: ExportedChange | None = None


@dataclass(frozen=True)
class ExecutionResult:
    """What came of it."""

    outcome: Outcome
    patch: Patch
    commands: tuple[CheckedCommand, ...]
    change: ExportedChange
    warnings: tuple[str, ...] = ()
    """What a person should know of the environment the agent worked in."""


@dataclass(frozen=True)
class OpenedSandbox:
    """A sandbox that is ready for the agent, and what a person should know of it."""

    runtime: Runtime
    warnings: tuple[str, ...]


def execute(job: ExecutionRequest, workspace: Workspace, log: RunLog) -> ExecutionResult:
    """Run the agent on a checkout of the workspace's base. The sandbox is gone when it returns.

    A log that has events already is gone on with: what it says was done in the sandbox is done
    again first, and one whose work has ended only gives its change once more: without a sandbox
    where the change was kept.
    """
    if job.change is not None:
        patch = workspace.receive(job.change.bundle, job.change.commit, job.change.tree)
        return ExecutionResult(
            derive_outcome(log.state), patch, tuple(log.state.commands), job.change
        )
    kind = runtime_kind(job.settings, job.host)
    earlier = tuple(log.state.events)
    opening = log.opening or _begin(job, workspace, kind, log)
    own = model_of(opening.agent, job.agents)
    check_run_model(job.settings, opening.agent, own, job.host.environment, log)
    with open_sandbox(job, kind, workspace, log) as opened:
        runtime = opened.runtime
        job.control.interrupt_with(runtime.interrupt)
        executor = rebuild(earlier, runtime, log) if earlier else runtime
        redact = job.host.redactor(job.settings).redact_text
        environment = job.host.environment
        with (
            open_mcp(job.settings, environment, job.recording, runtime, log, redact) as mcp,
            CodeIndex(workspace.git, workspace.base) as index,
        ):
            job.control.interrupt_with(partial(_interrupt, mcp, index, runtime))
            outcome = _run_agent(job, opening, workspace, executor, runtime, log, mcp, index)
        if outcome.state is RunState.STOPPED:
            runtime.interrupt()
        patch, change = _take_change(job, workspace, runtime, log)
        if _proposes_notes(job, outcome, patch, workspace, runtime, log):
            patch, change = _take_change(job, workspace, runtime, log)
    warnings = (*opened.warnings, *mcp.warnings)
    return ExecutionResult(outcome, patch, tuple(log.state.commands), change, warnings)


def _begin(job: ExecutionRequest, workspace: Workspace, kind: str, log: RunLog) -> RunStarted:
    return log.stream.add(
        RunStarted(
            run=job.run,
            version=__version__,
            task=job.task,
            base=workspace.base,
            agent=job.settings.agent,
            model=model_of(job.settings.agent, job.agents) or model_name(job.settings),
            runtime=kind,
            limits=job.settings.limits,
            condenser=job.settings.condenser,
            condenser_max_tokens=job.settings.condenser_max_tokens,
        )
    )


@contextmanager
def open_sandbox(
    job: ExecutionRequest, kind: str, workspace: Workspace, log: RunLog
) -> Iterator[OpenedSandbox]:
    """A sandbox with the workspace's base checked out and the project's environment set up. It is
    gone when the context is left."""
    started = time.monotonic()
    environment = open_environment(job.settings, kind, workspace, job.host)
    sandbox = open_runtime(job.settings, kind, job.run, job.host, environment.image)
    with record_connections(log.stream, sandbox.take_connections), sandbox as runtime:
        log.stage("sandbox", runtime.isolation, time.monotonic() - started)
        started = time.monotonic()
        runtime.checkout(workspace.git_dir_tar(), workspace.base, workspace.branch)
        log.stage(ROOT_STAGE, runtime.root, time.monotonic() - started)
        seconds = job.settings.setup_timeout
        made = set_up(environment, runtime, log.stream, log.state, workspace.base, seconds)
        yield OpenedSandbox(runtime, made.warnings)


def rebuild(earlier: Sequence[Event], runtime: Runtime, log: RunLog) -> RelocatedExecutor:
    """Do again what the log says was done; the executor to go on with. Differences are told in
    the log, which gets no second copy of anything else."""
    started = time.monotonic()
    reported = 0

    def report(_: RecordedAction, differs: Difference) -> None:
        nonlocal reported
        reported += 1
        if reported <= MOST_REPORTED:
            log.stream.add(differs.event())

    roots = roots_of(earlier)
    executor = RelocatedExecutor(runtime, roots, runtime.root)
    done = reexecute(earlier, executor, (*roots, runtime.root), told=report)
    detail = f"{done.actions} action{'' if done.actions == 1 else 's'} done again"
    if done.differences:
        detail += f", {len(done.differences)} with another result"
    if done.skipped:
        detail += f", {len(done.skipped)} that reach outside left out"
    log.stage("rebuilt", detail, time.monotonic() - started)
    return executor


def _run_agent(
    job: ExecutionRequest,
    opening: RunStarted,
    workspace: Workspace,
    executor: Executor,
    runtime: Runtime,
    log: RunLog,
    mcp: McpOfRun,
    index: CodeIndex,
) -> Outcome:
    settings, recording = _as_begun(job, opening, log.state)
    redactor = job.host.redactor(settings)
    model_on = open_models(settings, recording, log.state, job.run, redactor.redact_text)
    offer = AvailableTools(
        delegates=True,
        browser=runtime.browser,
        index=True,
        mcp=mcp.tools,
        definitions=job.agents,
        lines_of=workspace.lines_of,
        recall=True,
        remember=settings.notes != "off",
        threads=_answered_apart(job, settings),
    )
    wanted = model_of(settings.agent, job.agents)
    model = model_on(log.stream, agent=settings.agent, model=wanted)
    agent = open_agent(settings, model, offer)
    controller = AgentController(
        agent=agent,
        stream=log.stream,
        state=log.state,
        executor=executor,
        condensers=open_condensers(settings, model_on, job.recording),
        now=job.now,
        control=job.control,
        most=job.most,
        delegates=open_delegates(settings, model_on, offer),
        hosted={
            **mcp.hosted,
            **index_action_handlers(index),
            **job.knowledge.hosted(log.state),
            ReviewComment: note_comment(workspace.pull),
        },
        confirmation=open_confirmation(settings, runtime.root, model_on, job.waiting),
        recaller=job.knowledge.recaller(
            (*roots_of(log.state.events), runtime.root), log.stream, job.recording
        ),
    )
    if job.recording and recording is job.recording:
        check = ReplayCheck(job.recording, opening, log.stream, runtime.root)
        log.stream.subscribe("replay", check)
    if not any(isinstance(e, SystemPrompt) for e in log.state.events):
        log.stream.add(agent.system_prompt())
    if not any(isinstance(e, Message) and e.source is Source.USER for e in log.state.events):
        prompt = _task_words(job, settings, workspace, runtime.root, log.state)
        log.stream.add(Message(content=prompt, source=Source.USER))
    return controller.run()


def _answered_apart(job: ExecutionRequest, settings: Settings) -> tuple[str, ...]:
    """Names of the conversations on lines that the agent answers one by one. A question in one of
    them is answered by its closing words."""
    if len(job.task.asked) == 1 and is_answering_agent(settings.agent, job.agents):
        return ()
    return tuple(each.label for each in job.task.asked)


def _task_words(
    job: ExecutionRequest, settings: Settings, workspace: Workspace, root: str, state: State
) -> str:
    prompt = next((e for e in state.events if isinstance(e, SystemPrompt)), None)
    return render_task(
        job.task,
        workspace.base,
        root,
        settings.allow_list.described,
        asks=is_answering_agent(settings.agent, job.agents),
        reviews=settings.agent == REVIEWER,
        calls=has_own_work(settings.agent),
        diff=workspace.pull_diff(with_invisible_shown),
        dialect=prompt.dialect if prompt else "tools",
        threads=bool(_answered_apart(job, settings)),
    )


def _as_begun(
    job: ExecutionRequest, opening: RunStarted, state: State
) -> tuple[Settings, Sequence[Event]]:
    """The settings with the agent and the dialect that the log was begun with, and the recording
    without the replies that the log has already."""
    prompt = next((e for e in state.events if isinstance(e, SystemPrompt)), None)
    given = Counter(reply[0] for event in state.events if (reply := reply_in(event)) is not None)
    if prompt is None:
        return job.settings.model_copy(update={"agent": opening.agent}), job.recording
    begun = {"agent": opening.agent, "dialect": prompt.dialect}
    left: list[Event] = []
    for event in job.recording:
        reply = reply_in(event)
        if reply is not None and given[reply[0]] > 0:
            given[reply[0]] -= 1
        else:
            left.append(event)
    return job.settings.model_copy(update=begun), left


def _interrupt(mcp: McpOfRun, index: CodeIndex, runtime: Runtime) -> None:
    mcp.interrupt()
    index.interrupt()
    runtime.interrupt()


def _proposes_notes(
    job: ExecutionRequest,
    outcome: Outcome,
    patch: Patch,
    workspace: Workspace,
    runtime: Runtime,
    log: RunLog,
) -> bool:
    """Whether the run's notes were added to what it changed. They go along with a change and are
    none by themselves."""
    notes = notes_of(log.state.events)
    finished = outcome.state is RunState.FINISHED and not patch.is_empty
    settings = job.settings
    if settings.notes != "propose" or not notes or not finished:
        return False
    if is_protected(NOTES_FILE, settings.protected_paths):
        return False
    before = workspace.read(NOTES_FILE)
    return bool(propose_notes(notes, before, runtime, log.stream))


def _take_change(
    job: ExecutionRequest, workspace: Workspace, runtime: Runtime, log: RunLog
) -> tuple[Patch, ExportedChange]:
    """The change as git objects, checked; kept whatever the agent's end was."""
    started = time.monotonic()
    limit = BUNDLE_FACTOR * job.settings.max_patch_bytes
    change = runtime.export_change(workspace.base, limit)
    bundle = None
    if change["bundle"] is not None:
        bundle = job.folder / f"{change['tree']}.bundle"
        bundle.unlink(missing_ok=True)
        runtime.fetch(change["bundle"], bundle, limit)
    patch = workspace.receive(bundle, change["commit"], change["tree"])
    files = f"{len(patch.files)} file{'' if len(patch.files) == 1 else 's'} changed"
    left_out, generated = tuple(change["left_out"]), tuple(change["generated"])
    if left_out or generated:
        files += f", {len(left_out) + len(generated)} left out"
    log.stage("change", files, time.monotonic() - started)
    exported = ExportedChange(
        commit=change["commit"],
        tree=change["tree"],
        bundle=bundle,
        left_out=left_out,
        generated=generated,
    )
    return patch, exported
