"""The verify stage: executes the project's checks on the run's change, in sandboxes of its own.

Each tree is checked out by Resolver in a fresh sandbox, with the image and the set-up of the
agent's sandbox. Nothing that the agent's session left is in it. Where a tree alters dependencies or
the set-up, the set-up is run again on its files.
"""

import os
from collections.abc import Callable

from resolver.config.settings import MAX_CORRECTIONS, Settings
from resolver.config.templates import render
from resolver.errors import RunStopped
from resolver.events.lifecycle import CheckExecuted, VerificationCompleted
from resolver.events.run_log import RunLog
from resolver.models.run import Patch
from resolver.models.verification import DISABLED, Verification
from resolver.runs.check_sandboxes import CheckSandboxes
from resolver.runs.stages import PreparedRun
from resolver.runs.wiring.sandbox import RunHost, runtime_kind
from resolver.runtime.service_policy import ServicePolicy
from resolver.verification.execute import VerificationRequest, verify_change
from resolver.verification.feedback import can_be_corrected, failing_checks
from resolver.verification.runner import CheckRunner
from resolver.verification.selection import select_checks
from resolver.verification.trees import build_trees, read_expectations

RunChecks = Callable[[PreparedRun, RunLog, Patch], Verification]


class ChangeVerifier:
    """Verifies the changes of one run: after each of the agent's rounds, and before publishing.

    run_checks: executes the checks and returns what they show, `verify_in_sandboxes` by default. It
        repeats nothing that the log has.
    """

    def __init__(
        self, prepared: PreparedRun, log: RunLog, run_checks: RunChecks | None = None
    ) -> None:
        self._prepared = prepared
        self._control = prepared.request.control
        self._log = log
        self._run_checks = run_checks or verify_in_sandboxes
        self._verified: dict[str, Verification] = {}

    def verify(self, patch: Patch) -> Verification:
        """Return the verification of the change. Raises RunStopped if the run was stopped."""
        if not self._prepared.settings.verify:
            return DISABLED
        if patch.is_empty:
            return Verification(verdict="not_verified", reason="no_change")
        self._raise_if_stopped()
        if patch.tree not in self._verified:
            self._verified[patch.tree] = self._run_checks(self._prepared, self._log, patch)
            self._raise_if_stopped()
        return self._verified[patch.tree]

    def feedback(self, patch: Patch) -> str | None:
        """Return the message to the agent about checks, or a set-up, that its change makes fail.

        It is None if nothing fails, or the agent has got as many as it may. A stop
        is left to `verify`.
        """
        try:
            verification = self.verify(patch)
        except RunStopped:
            return None
        is_exhausted = self._rounds_used() >= MAX_CORRECTIONS
        if is_exhausted or not can_be_corrected(verification):
            return None
        self._record(patch, verification, sent=True)
        return render("agent/checks_failed.md.j2", failing_checks(verification)).strip()

    def conclude(self, patch: Patch) -> Verification:
        """Verify the change that is published, and record the result in the log."""
        verification = self.verify(patch)
        if verification.reason not in {"disabled", "no_change"}:
            self._record(patch, verification, sent=False)
        return verification

    def _raise_if_stopped(self) -> None:
        try:
            self._control.raise_if_stopped()
        except RunStopped as stopped:
            what = f"{stopped.what} while its change was verified"
            raise RunStopped(what, "look at the change, which is kept") from stopped

    def _rounds_used(self) -> int:
        since = self._log.state.events[self._log.start_index(self._prepared.request.run) :]
        return sum(isinstance(e, VerificationCompleted) and e.sent_to_agent for e in since)

    def _record(self, patch: Patch, verification: Verification, *, sent: bool) -> None:
        evidence = verification.evidence()
        completed = (e for e in self._log.state.events if isinstance(e, VerificationCompleted))
        last = max(completed, key=lambda e: e.id, default=None)
        known = last is not None and last.tree == patch.tree and last.evidence == evidence
        if sent or not known:
            self._log.stream.add(
                VerificationCompleted(
                    tree=patch.tree,
                    evidence=evidence,
                    omitted=verification.omitted,
                    unprepared=verification.unprepared,
                    sent_to_agent=sent,
                )
            )


def verify_in_sandboxes(prepared: PreparedRun, log: RunLog, patch: Patch) -> Verification:
    """Execute the checks on the change, in sandboxes of its own, and return what they show."""
    settings, workspace = prepared.settings, prepared.workspace
    trees = build_trees(workspace, patch.tree)
    selection = select_checks(
        settings.project_checks,
        workspace,
        trees.changed_files,
        patch.tree,
        service_policy(settings, prepared.request.host),
    )
    names = {service.name for check in selection.checks for service in check.services}
    host, run = prepared.request.host, prepared.request.run
    control = prepared.request.control
    sandboxes = CheckSandboxes(
        settings, host, run, workspace, trees.commits, control, tuple(sorted(names))
    )
    recorded = (e for e in log.state.events if isinstance(e, CheckExecuted))

    runner = CheckRunner(
        trees=trees.trees,
        environment=sandboxes.digest,
        open_executor=sandboxes.open,
        record=log.stream.add,
        seconds=settings.verification_seconds,
        recorded={event.key: event.execution for event in recorded},
        base_results=sandboxes.base_results,
        parallel=len(os.sched_getaffinity(0)) > 1,
    )
    request = VerificationRequest(
        selection=selection,
        changed_files=trees.changed_files,
        changed_tests=trees.changed_tests,
        review=trees.review,
        unprepared=sandboxes.unprepared,
        suggested_setup=sandboxes.suggested_setup,
        interruptible=control.interruptible,
    )
    verified = verify_change(request, runner)
    for connection in sandboxes.connections:
        log.stream.add(connection)
    if verified.reason != "former_behavior":
        return verified
    found = read_expectations(workspace.git, workspace.base, patch.tree, trees.altered_tests)
    return verified.model_copy(update={"expectations": found})


def service_policy(settings: Settings, host: RunHost) -> ServicePolicy:
    """Return the services that the operator allows alongside the sandboxes of checks."""
    images = settings.service_images
    return ServicePolicy(images, not images or runtime_kind(settings, host) == "docker")
