"""The execute stage: start the sandbox, run the agent and take its change out."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from resolver import __version__
from resolver.agents.definitions import AgentDefinition, AvailableTools
from resolver.agents.readonly import REVIEWER
from resolver.agents.registry import find_agent_model, has_fixed_task, is_answering_agent
from resolver.agents.task_prompt import render_task
from resolver.code_index.index import CodeIndex, index_action_handlers
from resolver.config.settings import Settings
from resolver.controller.control import Control
from resolver.controller.controller import AgentController, Executor
from resolver.controller.delegation import reply_in
from resolver.controller.limits import derive_outcome, find_reached_limit
from resolver.controller.recovery import MAX_REPORTED, Difference, ReplayCheck
from resolver.events.actions import Message, ReviewComment
from resolver.events.base import Source
from resolver.events.lifecycle import AGENT, ROOT_STAGE, RunStarted, SystemPrompt, roots_of
from resolver.events.log import Event
from resolver.events.observations import AgentStateChanged
from resolver.events.run_log import RunLog
from resolver.events.state import State
from resolver.events.stream import Clock
from resolver.git.policy import is_protected
from resolver.git.workspace import Workspace
from resolver.github.text.markdown import with_invisible_shown
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
from resolver.publishing.review import note_comment
from resolver.runs.resuming.rebuild import RecordedAction, RelocatedExecutor, reexecute
from resolver.runs.wiring.agents import (
    ApprovalRequester,
    open_agent,
    open_condensers,
    open_confirmation,
    open_delegates,
)
from resolver.runs.wiring.knowledge import Knowledge
from resolver.runs.wiring.mcp import McpOfRun, open_mcp
from resolver.runs.wiring.models import check_run_model, model_name, open_models
from resolver.runs.wiring.sandbox import (
    RunHost,
    open_environment,
    open_runtime,
    runtime_kind,
)
from resolver.runtime.egress import record_connections
from resolver.runtime.environment.environment import set_up
from resolver.runtime.runtime import Runtime

BUNDLE_FACTOR = 4
"""Maximum size of a bundle, as a multiple of the largest patch that would be published."""


@dataclass(frozen=True)
class ExecutionRequest:
    """Input of the execute stage.

    recording: events of the log that is replayed; empty for a live model.
    control: queue of people's requests to the running run.
    most: totals up to which such requests can extend the limits.
    agents: the agents that the repository defines.
    knowledge: skills, instructions and notes for the agents, in addition to the task.
    waiting: how a person is asked to approve an action.
    change: the change that an earlier attempt exported; with it the work is done.
    send_back: called with a finished change; returns what the agent is told about it before it
        continues its work, "" if the work is done.
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
    send_back: Callable[[Patch], str] = lambda _: ""


@dataclass(frozen=True)
class ExecutionResult:
    """Outcome of the execute stage, with the change and the commands that were run."""

    outcome: Outcome
    patch: Patch
    commands: tuple[CheckedCommand, ...]
    change: ExportedChange
    warnings: tuple[str, ...] = ()
    """Problems of the environment that the agent worked in, for a person."""


@dataclass(frozen=True)
class OpenedSandbox:
    """A sandbox that is ready for the agent, with the warnings of its set-up for a person."""

    runtime: Runtime
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class _AgentParts:
    """What the agent works with, in its first work as in each correction of it."""

    job: ExecutionRequest
    opening: RunStarted
    workspace: Workspace
    executor: Executor
    runtime: Runtime
    log: RunLog
    mcp: McpOfRun
    index: CodeIndex


def execute(job: ExecutionRequest, workspace: Workspace, log: RunLog) -> ExecutionResult:
    """Run the agent on a checkout of the workspace's base. The sandbox is removed on return.

    If the log has events already, the run is resumed: the actions in the log are first executed
    again in the new sandbox. If the work in the log has ended, only its change is exported once
    more. If that change was kept, no sandbox is started at all.
    """
    if job.change is not None:
        patch = workspace.receive(job.change.bundle, job.change.commit, job.change.tree)
        return ExecutionResult(
            derive_outcome(log.state), patch, tuple(log.state.commands), job.change
        )
    kind = runtime_kind(job.settings, job.host)
    earlier = tuple(log.state.events)
    opening = log.opening or _begin(job, workspace, kind, log)
    own = find_agent_model(opening.agent, job.agents)
    check_run_model(job.settings, opening.agent, own, job.host.environment, log)
    with open_sandbox(job, kind, workspace, log) as opened:
        runtime = opened.runtime
        job.control.interrupt_with(runtime.interrupt)
        # Replay by re-execution: the sandbox of a killed run is gone, and there is no snapshot of
        # it. Its state is a function of the base commit and of the logged actions, so executing
        # them again in order in a fresh checkout restores it. The controller then continues at the
        # end of the log.
        executor = rebuild(earlier, runtime, log) if earlier else runtime
        redact = job.host.redactor(job.settings).redact_text
        environment = job.host.environment
        with (
            open_mcp(job.settings, environment, job.recording, runtime, log, redact) as mcp,
            CodeIndex(workspace.git, workspace.base) as index,
        ):
            parts = _AgentParts(job, opening, workspace, executor, runtime, log, mcp, index)
            outcome, patch, change = _work_once(parts)
            while words := _words_to_send_back(job, outcome, patch, log):
                log.stream.add(Message(content=words, source=Source.USER))
                log.stream.add(AgentStateChanged(state=RunState.RUNNING))
                corrected = _work_once(parts)
                if corrected[0].state not in _ENDED_ON_PURPOSE:
                    # The agent got no further, so the change that it had finished is published.
                    outcome = _with_totals(outcome, corrected[0])
                    break
                outcome, patch, change = corrected
    warnings = (*opened.warnings, *mcp.warnings)
    return ExecutionResult(outcome, patch, tuple(log.state.commands), change, warnings)


_ENDED_ON_PURPOSE = frozenset({RunState.FINISHED, RunState.STOPPED, RunState.REJECTED})
"""States after a correction in which the new outcome replaces the earlier one."""


def _work_once(parts: _AgentParts) -> tuple[Outcome, Patch, ExportedChange]:
    """Run the agent until it ends, and take its change out."""
    job, log, runtime = parts.job, parts.log, parts.runtime
    job.control.interrupt_with(partial(_interrupt, parts.mcp, parts.index, runtime))
    outcome = _run_agent(parts)
    # A stop may leave a command running, which would change files while they are exported.
    if outcome.state is RunState.STOPPED:
        runtime.interrupt()
    patch, change = _take_change(job, parts.workspace, runtime, log)
    # Notes are written into the sandbox only once the change is known, so it is exported again.
    if _proposes_notes(job, outcome, patch, parts.workspace, runtime, log):
        patch, change = _take_change(job, parts.workspace, runtime, log)
    return outcome, patch, change


def _words_to_send_back(job: ExecutionRequest, outcome: Outcome, patch: Patch, log: RunLog) -> str:
    """Return what the agent is told about its change so that it continues; "" if it is done."""
    if outcome.state is not RunState.FINISHED or patch.is_empty:
        return ""
    if find_reached_limit(log.state, job.now()) is not None or not _can_reply(job, log):
        return ""
    return job.send_back(patch)


def _can_reply(job: ExecutionRequest, log: RunLog) -> bool:
    """Return False if the model's replies come from a recording that has no more of them."""
    if not job.recording or log.opening is None:
        return True
    _, left = _as_begun(job, log.opening, log.state)
    return any((reply := reply_in(event)) is not None and reply[0] == AGENT for event in left)


def _with_totals(outcome: Outcome, newest: Outcome) -> Outcome:
    """Return the outcome with what the whole run cost."""
    names = ("iterations", "tokens", "cost", "seconds")
    return outcome.model_copy(update={name: getattr(newest, name) for name in names})


def _begin(job: ExecutionRequest, workspace: Workspace, kind: str, log: RunLog) -> RunStarted:
    """Log the first event, which holds everything that a later resume needs to know."""
    return log.stream.add(
        RunStarted(
            run=job.run,
            version=__version__,
            task=job.task,
            base=workspace.base,
            agent=job.settings.agent,
            model=find_agent_model(job.settings.agent, job.agents) or model_name(job.settings),
            runtime=kind,
            limits=job.settings.limits,
            condenser=job.settings.condenser.stages,
            condenser_max_tokens=job.settings.condenser.max_tokens,
        )
    )


@contextmanager
def open_sandbox(
    job: ExecutionRequest, kind: str, workspace: Workspace, log: RunLog
) -> Iterator[OpenedSandbox]:
    """Yield a sandbox with the workspace's base checked out and the project's environment set up.

    It is removed when the context is left.
    """
    started = time.monotonic()
    environment = open_environment(job.settings, kind, workspace, job.host)
    sandbox = open_runtime(job.settings, kind, job.run, job.host, environment.image)
    with record_connections(log.stream, sandbox.take_connections), sandbox as runtime:
        log.stage("sandbox", runtime.isolation, time.monotonic() - started)
        started = time.monotonic()
        runtime.checkout(workspace.git_dir_tar(), workspace.base, workspace.branch)
        log.stage(ROOT_STAGE, runtime.root, time.monotonic() - started)
        seconds = job.settings.timeout_seconds.setup
        made = set_up(environment, runtime, log.stream, log.state, workspace.base, seconds)
        runtime.report_changes()
        yield OpenedSandbox(runtime, made.warnings)


def rebuild(earlier: Sequence[Event], runtime: Runtime, log: RunLog) -> RelocatedExecutor:
    """Execute the actions of the log again and return the executor to continue with.

    Differences from the recorded results are added to the log. Nothing else is: the log already
    contains the actions and their observations.
    """
    started = time.monotonic()
    reported = 0

    def report(_: RecordedAction, differs: Difference) -> None:
        nonlocal reported
        reported += 1
        if reported <= MAX_REPORTED:
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


def _run_agent(parts: _AgentParts) -> Outcome:
    """Assemble the agent and its controller, and run them until the agent ends."""
    job, log, runtime = parts.job, parts.log, parts.runtime
    settings, recording = _as_begun(job, parts.opening, log.state)
    redactor = job.host.redactor(settings)
    model_on = open_models(settings, recording, log.state, job.run, redactor.redact_text)
    offer = AvailableTools(
        delegates=True,
        browser=runtime.browser,
        index=True,
        mcp=parts.mcp.tools,
        definitions=job.agents,
        count_lines=parts.workspace.lines_of,
        recall=True,
        remember=settings.notes != "off",
        thread_labels=_answered_apart(job, settings),
    )
    wanted = find_agent_model(settings.agent, job.agents)
    model = model_on(log.stream, agent=settings.agent, model=wanted)
    agent = open_agent(settings, model, offer)
    controller = AgentController(
        agent=agent,
        stream=log.stream,
        state=log.state,
        executor=parts.executor,
        condensers=open_condensers(settings, model_on, job.recording),
        now=job.now,
        control=job.control,
        max_limits=job.most,
        delegates=open_delegates(settings, model_on, offer),
        host_handlers={
            **parts.mcp.hosted,
            **index_action_handlers(parts.index),
            **job.knowledge.hosted(log.state),
            ReviewComment: note_comment(parts.workspace.pull),
        },
        confirmation=open_confirmation(settings, runtime.root, model_on, job.waiting),
        recaller=job.knowledge.recaller(
            (*roots_of(log.state.events), runtime.root),
            log.stream,
            job.recording,
        ),
    )
    # `_as_begun` returns the recording itself only for a log without a system prompt, that is for a
    # replay that starts at the beginning. Only then can both logs be compared event by event.
    if job.recording and recording is job.recording:
        check = ReplayCheck(job.recording, parts.opening, log.stream, runtime.root)
        log.stream.subscribe("replay", check)
    if not any(isinstance(e, SystemPrompt) for e in log.state.events):
        log.stream.add(agent.system_prompt())
    if not any(isinstance(e, Message) and e.source is Source.USER for e in log.state.events):
        prompt = _task_words(job, settings, parts.workspace, runtime.root, log.state)
        log.stream.add(Message(content=prompt, source=Source.USER))
    return controller.run()


def _answered_apart(job: ExecutionRequest, settings: Settings) -> tuple[str, ...]:
    """Return the labels of the review threads that the agent answers one by one.

    A question that was asked in a single thread is answered by the agent's final message.
    """
    if len(job.task.asked) == 1 and is_answering_agent(settings.agent, job.agents):
        return ()
    return tuple(each.label for each in job.task.asked)


def _task_words(
    job: ExecutionRequest, settings: Settings, workspace: Workspace, root: str, state: State
) -> str:
    """Return the prompt with the task."""
    prompt = next((e for e in state.events if isinstance(e, SystemPrompt)), None)
    return render_task(
        job.task,
        workspace.base,
        root,
        settings.allow_list.described,
        expects_answer=is_answering_agent(settings.agent, job.agents),
        expects_review=settings.agent == REVIEWER,
        has_fixed_task=has_fixed_task(settings.agent),
        diff=workspace.pull_diff(with_invisible_shown),
        dialect=prompt.dialect if prompt else "tools",
        takes_answers=bool(_answered_apart(job, settings)),
    )


def _as_begun(
    job: ExecutionRequest, opening: RunStarted, state: State
) -> tuple[Settings, Sequence[Event]]:
    """Return the settings with the agent and the dialect that the log was started with, and the
    recording without the replies that the log already contains."""
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
    """Interrupt whatever is running: an MCP call, the indexer or a command in the sandbox."""
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
    """Return True if the run's notes were added to the changed files.

    Notes are only added to an existing change; they are no change by themselves.
    """
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
    """Export the change as git objects and check it. This is done for every outcome of the
    agent."""
    started = time.monotonic()
    limit = BUNDLE_FACTOR * job.settings.max_patch.bytes
    change = runtime.export_change(workspace.base, limit)
    bundle = None
    if change["bundle"] is not None:
        bundle = job.folder / f"{change['tree']}.bundle"
        bundle.unlink(missing_ok=True)
        runtime.fetch(change["bundle"], bundle, limit)
    # The bundle comes out of the sandbox and is not trusted: `receive` checks its objects and
    # compares the tree with the one that was announced.
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
