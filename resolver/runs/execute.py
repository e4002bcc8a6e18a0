"""The execute stage: start the sandbox, run the agent and take its change out."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from resolver import __version__
from resolver.agents.base import Agent
from resolver.agents.built_in import REVIEWER
from resolver.agents.definitions import AvailableTools
from resolver.agents.registry import (
    find_agent_model,
    has_fixed_task,
    is_answering_agent,
    make_agent,
)
from resolver.agents.task_prompt import render_task
from resolver.code_index.index import CodeIndex, index_action_handlers
from resolver.config.settings import Settings
from resolver.controller.confirmation import ApprovalNotifier
from resolver.controller.control import Control
from resolver.controller.controller import AgentController, ControllerParts, Executor
from resolver.controller.limits import derive_outcome, find_reached_limit
from resolver.controller.replay import MAX_REPORTED, compare_with_recording
from resolver.errors import SandboxLost
from resolver.events.actions import Message, Recall, ReviewComment
from resolver.events.base import Source
from resolver.events.lifecycle import (
    ROOT_STAGE,
    RunStarted,
    SystemPrompt,
    Warned,
    roots_of,
)
from resolver.events.log import Event
from resolver.events.observations import AgentStateChanged
from resolver.events.run_log import RunLog, reply_in
from resolver.events.state import State
from resolver.git.policy import MAX_PATCH_BYTES
from resolver.git.workspace import Workspace
from resolver.memory.skills.library import answer_recall
from resolver.memory.skills.recaller import SkillRecaller
from resolver.models.run import ExportedChange, Outcome, Patch, RunState
from resolver.publishing.review_comments import review_comment_handler
from resolver.runs.reporting import max_extended_limits
from resolver.runs.resuming.rebuild import RelocatedExecutor, reexecute
from resolver.runs.stages import ExecutedRun, PreparedRun
from resolver.runs.wiring.agents import (
    McpSession,
    open_condensers,
    open_confirmation,
    open_delegates,
    open_mcp,
)
from resolver.runs.wiring.models import ModelOpener, check_run_model, model_name, recording_of
from resolver.runs.wiring.sandbox import (
    RunHost,
    open_environment,
    open_runtime,
    runtime_kind,
)
from resolver.runtime.egress import record_connections
from resolver.runtime.environment.environment import set_up
from resolver.runtime.runtime import Runtime
from resolver.security.invisible_text import with_invisible_shown

logger = logging.getLogger("resolver.runs.execute")

MAX_REBUILDS = 5
"""Maximum number of sandboxes that replace one that ended or hung during the run."""

BUNDLE_FACTOR = 4
"""Maximum size of a bundle, as a multiple of the largest patch that would be published."""


@dataclass(frozen=True)
class ExecutionRequest:
    """Input of the execute stage.

    export_folder: gets the exported change.
    notify: shows an action to the person who may approve it; None if nobody can answer.
    feedback: called with a finished change; returns the message with which the change goes back to
        the agent for correction, None if the work is done.
    """

    prepared: PreparedRun
    log: RunLog
    export_folder: Path
    notify: ApprovalNotifier | None = None
    feedback: Callable[[Patch], str | None] = lambda _: None

    @cached_property
    def recording(self) -> Sequence[Event]:
        """Events of the log that is replayed; empty for a live model."""
        return recording_of(self.prepared.settings)


@dataclass(frozen=True)
class _AgentParts:
    """The parts that the agent works with, both at first and for each correction."""

    request: ExecutionRequest
    executor: Executor
    runtime: Runtime
    mcp: McpSession
    index: CodeIndex


def execute(request: ExecutionRequest) -> ExecutedRun:
    """Run the agent on a checkout of the workspace's base. The sandbox is removed on return.

    If the log has events already, the run is resumed: the actions in the log are first executed
    again in the new sandbox. If the work in the log has ended, no sandbox is started if the output
    folder has its change; else the change is exported once more.

    A sandbox that ends or hangs before the work is done is replaced in the same way, up to
    MAX_REBUILDS times.
    """
    prepared, log, run_request = request.prepared, request.log, request.prepared.request
    # A change that an earlier attempt exported is used only if its work had ended. Otherwise the
    # agent continues, and a later export replaces it.
    if log.is_done and (change := run_request.output.change):
        patch = prepared.workspace.receive(change.bundle, change.commit, change.tree)
        return ExecutedRun(derive_outcome(log.state), patch, tuple(log.state.commands), change)
    run_request.output.withdraw_change()
    kind = runtime_kind(prepared.settings, run_request.host)
    for rebuilds in range(MAX_REBUILDS):
        run_request.control.raise_if_stopped()
        try:
            return _execute_in_sandbox(request, kind)
        except SandboxLost as error:
            logger.warning(
                "run %s: %s; it is rebuilt (%d of at most %d times)",
                run_request.run,
                error.what,
                rebuilds + 1,
                MAX_REBUILDS,
            )
    return _execute_in_sandbox(request, kind)


def _execute_in_sandbox(request: ExecutionRequest, kind: str) -> ExecutedRun:
    """Run the agent in a new sandbox, after the actions that the log already has. Raises
    SandboxLost if the sandbox ends or hangs before the work is done."""
    prepared, log, run_request = request.prepared, request.log, request.prepared.request
    settings, workspace, host = prepared.settings, prepared.workspace, run_request.host
    logged_events = tuple(log.state.events)
    opening = log.opening or _log_start(prepared, kind, log)
    agent_model = find_agent_model(opening.agent, prepared.agents.agents)
    check_run_model(settings, opening.agent, agent_model, log)
    with open_sandbox(
        run_request.run,
        settings,
        host,
        kind,
        workspace,
        log,
        run_request.control,
    ) as (runtime, setup_warnings):
        # Replay by re-execution: the sandbox of a killed run is gone, and there is no snapshot of
        # it. Its state is a function of the base commit and of the logged actions, so executing
        # them again in order in a fresh checkout restores it. The controller then continues at the
        # end of the log.
        executor = rebuild(logged_events, runtime, log) if logged_events else runtime
        redact, recording = prepared.redactor.redact_text, request.recording
        index = CodeIndex(workspace.git, workspace.base)
        with open_mcp(settings, host.environment, recording, runtime, log, redact) as mcp:
            parts = _AgentParts(request, executor, runtime, mcp, index)
            outcome, patch, change = _work_once(parts)
            while feedback := _find_feedback(request, outcome, patch):
                log.stream.add(Message(content=feedback, source=Source.USER))
                log.stream.add(AgentStateChanged(state=RunState.RUNNING))
                corrected = _work_once(parts)
                if corrected[0].state not in _ENDED_ON_PURPOSE:
                    # The agent got no further, so the change that it had finished is published.
                    totals = {name: getattr(corrected[0], name) for name in _TOTALS}
                    outcome = outcome.model_copy(update=totals)
                    break
                outcome, patch, change = corrected
    if not log.state.divergences:
        for difference in compare_with_recording(request.recording, log.state.events):
            log.stream.add(difference)
    added = log.state.events[log.start_index(run_request.run) :]
    of_mcp = (e.message for e in added if isinstance(e, Warned) and e.about == "mcp")
    warnings = (*setup_warnings, *dict.fromkeys(of_mcp))
    return ExecutedRun(outcome, patch, tuple(log.state.commands), change, warnings=warnings)


_ENDED_ON_PURPOSE = frozenset({RunState.FINISHED, RunState.STOPPED, RunState.REJECTED})
"""States after a correction in which the new outcome replaces the earlier one."""

_TOTALS = ("iterations", "tokens", "cost", "seconds")
"""What of the newest outcome is that of the whole run."""


def _work_once(parts: _AgentParts) -> tuple[Outcome, Patch, ExportedChange]:
    """Run the agent until it ends, and take its change out."""
    request, runtime = parts.request, parts.runtime
    prepared = request.prepared
    interruptible = prepared.request.control.interruptible
    # What runs outside of the sandbox: an MCP call, or the indexer.
    with interruptible(parts.mcp.interrupt), interruptible(parts.index.interrupt):
        outcome = _run_agent(parts)
    # A stop may leave a command running, which would change files while they are exported.
    if outcome.state is RunState.STOPPED:
        runtime.interrupt()
    exported = take_change(request.export_folder, prepared.workspace, runtime, request.log)
    return outcome, *exported


def _find_feedback(request: ExecutionRequest, outcome: Outcome, patch: Patch) -> str | None:
    """Return the message that sends the change back to the agent; None if the work is done."""
    if outcome.state is not RunState.FINISHED or patch.is_empty:
        return None
    if find_reached_limit(request.log.state, request.prepared.request.now()) is not None:
        return None
    return request.feedback(patch)


def _log_start(prepared: PreparedRun, kind: str, log: RunLog) -> RunStarted:
    """Log the first event, which holds everything that a later resume needs to know."""
    settings, agents = prepared.settings, prepared.agents.agents
    return log.stream.add(
        RunStarted(
            run=prepared.request.run,
            version=__version__,
            task=prepared.task,
            base=prepared.workspace.base,
            agent=settings.agent,
            model=find_agent_model(settings.agent, agents) or model_name(settings),
            runtime=kind,
            limits=settings.limits,
            condenser=settings.condenser,
        )
    )


@contextmanager
def open_sandbox(
    run: str,
    settings: Settings,
    host: RunHost,
    kind: str,
    workspace: Workspace,
    log: RunLog,
    control: Control,
) -> Iterator[tuple[Runtime, tuple[str, ...]]]:
    """Yield a sandbox with the workspace's base checked out and the project's environment set up,
    and the warnings of the set-up for a person. The sandbox is removed when the context is left.

    kind: see `runtime_kind`. log: gets the events of the set-up. control: its stop ends what runs
    in the sandbox.
    """
    started = time.monotonic()
    environment = open_environment(settings, kind, workspace, host)
    sandbox = open_runtime(settings, kind, run, host, environment.image)
    with (
        record_connections(log.stream, sandbox.take_connections),
        sandbox as runtime,
        control.interruptible(runtime.interrupt, runtime.close),
    ):
        log.stage("sandbox", runtime.isolation, time.monotonic() - started)
        started = time.monotonic()
        runtime.checkout(workspace.git_dir_tar, workspace.base, workspace.branch)
        log.stage(ROOT_STAGE, runtime.root, time.monotonic() - started)
        seconds = settings.setup_seconds
        environment_setup = set_up(
            environment, runtime, log.stream, log.state, workspace.base, seconds
        )
        runtime.report_changes()
        yield runtime, environment_setup.warnings


def rebuild(earlier: Sequence[Event], runtime: Runtime, log: RunLog) -> RelocatedExecutor:
    """Execute the actions of the log again and return the executor to continue with.

    Only differences from the recorded results are added to the log, because it already contains the
    actions and their observations.
    """
    started = time.monotonic()
    executor = RelocatedExecutor(runtime, roots_of(earlier), runtime.root)
    result = reexecute(earlier, executor)
    for _, difference in result.differences[:MAX_REPORTED]:
        log.stream.add(difference)
    detail = f"{result.actions} action{'' if result.actions == 1 else 's'} done again"
    if result.differences:
        detail += f", {len(result.differences)} with another result"
    if result.skipped:
        detail += f", {len(result.skipped)} that reach outside left out"
    log.stage("rebuilt", detail, time.monotonic() - started)
    return executor


def _run_agent(parts: _AgentParts) -> Outcome:
    """Assemble the agent and its controller, and run them until the agent ends."""
    request, log, root = parts.request, parts.request.log, parts.runtime.root
    settings, recording = _restore_start(request)
    agent, controller = _open_controller(parts, settings, recording)
    if not any(isinstance(e, SystemPrompt) for e in log.state.events):
        log.stream.add(agent.system_prompt())
    if not any(isinstance(e, Message) and e.source is Source.USER for e in log.state.events):
        prompt = _render_task_prompt(request.prepared, settings, root, log.state)
        log.stream.add(Message(content=prompt, source=Source.USER))
    return controller.run()


def _open_controller(
    parts: _AgentParts, settings: Settings, recording: Sequence[Event]
) -> tuple[Agent, AgentController]:
    """Return the agent that the settings name, and the controller that runs it.

    recording: what the models answer from, before they are asked.
    """
    request, log, runtime = parts.request, parts.request.log, parts.runtime
    prepared, run_request = request.prepared, request.prepared.request
    interruptible = run_request.control.interruptible
    open_model = ModelOpener(settings, recording, log.state, interruptible)
    available_tools = AvailableTools(
        delegates=True,
        index=True,
        mcp=parts.mcp.tools,
        definitions=prepared.agents.agents,
        count_lines=prepared.workspace.lines_of,
        recall=True,
        thread_labels=_separately_answered_threads(prepared, settings),
    )
    agent_model = find_agent_model(settings.agent, prepared.agents.agents)
    model = open_model(log.stream, agent=settings.agent, model=agent_model)
    agent = make_agent(settings.agent, model, settings.model_options.dialect, available_tools)
    controller_parts = ControllerParts(
        executor=parts.executor,
        condensers=open_condensers(settings, open_model, request.recording),
        now=run_request.now,
        control=run_request.control,
        max_limits=max_extended_limits(prepared),
        delegates=open_delegates(settings, open_model, available_tools),
        host_handlers={
            **parts.mcp.handlers,
            **index_action_handlers(parts.index),
            Recall: partial(answer_recall, prepared.library),
            ReviewComment: review_comment_handler(prepared.workspace.pull),
        },
        confirmation=open_confirmation(settings, request.notify),
        recaller=SkillRecaller(prepared.library, (*roots_of(log.state.events), runtime.root)),
    )
    return agent, AgentController(agent, log.stream, log.state, controller_parts)


def _separately_answered_threads(prepared: PreparedRun, settings: Settings) -> tuple[str, ...]:
    """Return the labels of the review threads that the agent answers one by one.

    A question that was asked in a single thread is answered by the agent's final message.
    """
    asked = prepared.task.asked
    if len(asked) == 1 and is_answering_agent(settings.agent, prepared.agents.agents):
        return ()
    return tuple(thread.label for thread in asked)


def _render_task_prompt(prepared: PreparedRun, settings: Settings, root: str, state: State) -> str:
    """Return the prompt with the task."""
    workspace, conventions = prepared.workspace, prepared.conventions
    prompt = next((e for e in state.events if isinstance(e, SystemPrompt)), None)
    return render_task(
        prepared.task,
        workspace.base,
        root,
        settings.allow_list.described,
        expects_answer=is_answering_agent(settings.agent, prepared.agents.agents),
        expects_review=settings.agent == REVIEWER.name,
        has_fixed_task=has_fixed_task(settings.agent),
        diff=workspace.pull_diff(with_invisible_shown),
        dialect=prompt.dialect if prompt else "tools",
        takes_answers=bool(_separately_answered_threads(prepared, settings)),
        subjects=[with_invisible_shown(subject) for subject in conventions.subjects],
        template=with_invisible_shown(conventions.template),
    )


def _restore_start(request: ExecutionRequest) -> tuple[Settings, Sequence[Event]]:
    """Return the settings and the recording for the log to continue with.

    The settings have the agent and the dialect that the log was started with. The recording is
    without the replies that the log already contains.
    """
    settings, state, opening = request.prepared.settings, request.log.state, request.log.opening
    assert opening is not None, "the log was started"
    prompt = next((e for e in state.events if isinstance(e, SystemPrompt)), None)
    if prompt is None:
        return settings.model_copy(update={"agent": opening.agent}), request.recording
    options = settings.model_options.model_copy(update={"dialect": prompt.dialect})
    started_with = {"agent": opening.agent, "model_options": options}
    logged_replies = Counter(reply[0] for e in state.events if (reply := reply_in(e)))
    remaining: list[Event] = []
    for event in request.recording:
        reply = reply_in(event)
        if reply is not None and logged_replies[reply[0]] > 0:
            logged_replies[reply[0]] -= 1
        else:
            remaining.append(event)
    return settings.model_copy(update=started_with), remaining


def take_change(
    folder: Path, workspace: Workspace, runtime: Runtime, log: RunLog
) -> tuple[Patch, ExportedChange]:
    """Export the change as git objects to the folder and check it. This is done for every outcome
    of the agent."""
    started = time.monotonic()
    limit = BUNDLE_FACTOR * MAX_PATCH_BYTES
    change = runtime.export_change(workspace.base)
    bundle = None
    if change["bundle"] is not None:
        bundle = folder / f"{change['tree']}.bundle"
        bundle.unlink(missing_ok=True)
        runtime.fetch(change["bundle"], bundle, limit)
    # The bundle comes out of the sandbox and is not trusted: `receive` checks its objects and
    # compares the tree with the one that was announced.
    patch = workspace.receive(bundle, change["commit"], change["tree"])
    summary = f"{len(patch.files)} file{'' if len(patch.files) == 1 else 's'} changed"
    left_out, generated = tuple(change["left_out"]), tuple(change["generated"])
    if left_out or generated:
        summary += f", {len(left_out) + len(generated)} left out"
    log.stage("change", summary, time.monotonic() - started)
    exported = ExportedChange(
        commit=change["commit"],
        tree=change["tree"],
        bundle=bundle,
        left_out=left_out,
        generated=generated,
    )
    return patch, exported
