"""The verify stage: executes the project's checks on the run's change, in sandboxes of its own.

Each tree (the base commit, the base with the change's test files, the change) is checked out by
Resolver in a fresh sandbox, with the image and the set-up of the agent's sandbox. Nothing
that the agent's session left is in it. Where a tree alters dependencies or the set-up, the set-up
is run again on its files.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from resolver.config.settings import Settings
from resolver.config.templates import render
from resolver.controller.control import Control, Request, Stop
from resolver.errors import RunStopped
from resolver.events.lifecycle import CheckExecuted, VerificationCompleted
from resolver.events.run_log import RunLog
from resolver.git.git import HostGit
from resolver.git.overlay import overlay_tree, write_blob
from resolver.git.push import Identity, write_commit
from resolver.git.tree import decode_path, read_blobs, read_changes, read_renames, read_sizes
from resolver.git.workspace import Workspace
from resolver.models.run import Patch
from resolver.models.test_files import is_test_file
from resolver.models.verification import DISABLED, Verification
from resolver.runs.check_sandboxes import CheckSandboxes
from resolver.runs.stages import PreparedRun
from resolver.runs.wiring.sandbox import RunHost, runtime_kind
from resolver.verification.affected_tests import unchanged_tests
from resolver.verification.altered_tests import find_altered_tests
from resolver.verification.failures import can_be_corrected, failing_checks
from resolver.verification.inline_tests import with_inline_tests
from resolver.verification.project_tree import ProjectTree
from resolver.verification.runner import CheckRunner, RunnerOptions, TreeName
from resolver.verification.selection import select_checks
from resolver.verification.services import ServicePolicy
from resolver.verification.tampering import find_tampering
from resolver.verification.verify import VerificationRequest, verify_change

_AUTHOR = Identity("Resolver", "resolver@localhost")
_AT = datetime(2000, 1, 1, tzinfo=UTC)
"""Author and date of the commits that are only checked out. They are never published."""

MAX_TEXT_BYTES = 1_000_000
"""Maximum number of bytes of a changed file that is searched for tampering."""


@dataclass(frozen=True)
class ChangeTrees:
    """The trees that checks are executed on, and the paths that the change touches.

    trees, commits: by name. "base_with_tests" is missing if the change has no tests.
    renamed_tests: new path by old path; the old paths are no `deleted_tests`.
    """

    trees: Mapping[TreeName, str]
    commits: Mapping[TreeName, str]
    changed_files: tuple[str, ...]
    changed_tests: tuple[str, ...]
    deleted_tests: tuple[str, ...]
    renamed_tests: Mapping[str, str]


def build_trees(workspace: Workspace, patch: Patch) -> ChangeTrees:
    """Write the trees and commits to the host's clone. Nothing is checked out on the host."""
    git, base = workspace.git, workspace.base
    renames = read_renames(git, base, patch.tree).items()
    renamed = {
        decode_path(old): decode_path(new) for old, new in renames if is_test_file(decode_path(old))
    }
    # A runner may refuse two files of one name, so that a moved one must not stay where it was.
    moved = [old for old, new in renamed.items() if is_test_file(new)]
    inline = write_inline_tests(git, base, patch.tree)
    with_tests, tests = overlay_tree(git, base, patch.tree, is_test_file, moved, inline)
    trees: dict[TreeName, str] = {"base": workspace.tree(base), "head": patch.tree}
    if tests:
        trees["base_with_tests"] = with_tests
    commits: dict[TreeName, str] = {
        name: write_commit(git, base, tree, "Change", _AUTHOR, _AT, ())
        for name, tree in trees.items()
        if name != "base"
    }
    commits["base"] = base
    changes = read_changes(git, base, patch.tree)
    paths = {decode_path(c.path): c.status for c in changes}
    deleted = (path for path, status in paths.items() if status == "deleted")
    return ChangeTrees(
        trees=trees,
        commits=commits,
        changed_files=tuple(paths),
        changed_tests=tests,
        deleted_tests=tuple(p for p in deleted if is_test_file(p) and p not in renamed),
        renamed_tests=renamed,
    )


def write_inline_tests(git: HostGit, base: str, tree: str) -> dict[str, str]:
    """Write the base's source files with the unit tests that the change adds inside of them.

    Return the ids of the blobs by path.
    """
    changed = [c for c in read_changes(git, base, tree) if c.old_blob and c.new_blob]
    sources = [
        c for c in changed if c.path.endswith(b".rs") and not is_test_file(decode_path(c.path))
    ]
    blobs = {blob for c in sources for blob in (c.old_id, c.new_id)}
    sizes = read_sizes(git, blobs)
    contents = dict(read_blobs(git, [blob for blob in blobs if sizes[blob] <= MAX_TEXT_BYTES]))
    texts = {blob: data.decode("utf-8", "surrogateescape") for blob, data in contents.items()}
    found: dict[str, str] = {}
    for c in sources:
        old, new = texts.get(c.old_id), texts.get(c.new_id)
        if old is None or new is None:
            continue
        made = with_inline_tests(decode_path(c.path), old, new)
        if made is not None:
            content = made.encode("utf-8", "surrogateescape")
            found[decode_path(c.path)] = write_blob(git, content)
    return found


def changed_texts(workspace: Workspace, patch: Patch) -> list[tuple[str, str | None, str | None]]:
    """Return path, old text and new text of each changed file; None where there is none."""
    changes = read_changes(workspace.git, workspace.base, patch.tree)
    blobs = {blob for c in changes for blob in (c.old_blob, c.new_blob) if blob is not None}
    sizes = read_sizes(workspace.git, blobs)
    small = [blob for blob in blobs if sizes[blob] <= MAX_TEXT_BYTES]
    texts = {b: data.decode("utf-8", "replace") for b, data in read_blobs(workspace.git, small)}

    def text(blob: str | None) -> str | None:
        # A text that is too long to be read is shown as one that nobody can judge.
        return None if blob is None else texts.get(blob, "\0" * MAX_TEXT_BYTES)

    return [(decode_path(c.path), text(c.old_blob), text(c.new_blob)) for c in changes]


class ChangeVerifier:
    """Verifies the changes of one run: after each of the agent's rounds, and before publishing.

    run_checks: executes the checks and returns what they show. It repeats nothing that the log has.
    """

    def __init__(
        self,
        settings: Settings,
        run: str,
        control: Control,
        log: RunLog,
        run_checks: Callable[[Patch], Verification],
    ) -> None:
        self._settings = settings
        self._run = run
        self._control = control
        self._log = log
        self._run_checks = run_checks
        self._verified: dict[str, Verification] = {}
        self._stopped: RunStopped | None = None

    def verify(self, patch: Patch) -> Verification:
        """Return the verification of the change. Raises RunStopped if a person stopped the run."""
        if not self._settings.verify.enabled:
            return DISABLED
        if patch.is_empty:
            return Verification(verdict="not_verified", reason="no_change")
        if self._stopped is None and patch.tree not in self._verified:
            self._verified[patch.tree] = self._run_checks(patch)
        self.raise_if_stopped()
        return self._verified[patch.tree]

    def feedback(self, patch: Patch) -> str:
        """Return the message to the agent about checks, or a set-up, that its change makes fail.

        It is "" if nothing fails, or the agent has got as many as the settings allow. A stop
        is left to `verify`.
        """
        try:
            verification = self.verify(patch)
        except RunStopped:
            return ""
        rounds = self._settings.verify.rounds
        if not can_be_corrected(verification) or self._rounds_used() >= rounds:
            return ""
        self._record(patch, verification, sent=True)
        return render("agent/checks_failed.md.j2", failing_checks(verification)).strip()

    def conclude(self, patch: Patch) -> Verification:
        """Verify the change that is published, and record the result in the log."""
        verification = self.verify(patch)
        if verification.reason not in {"disabled", "no_change"}:
            self._record(patch, verification, sent=False)
        return verification

    def raise_if_stopped(self) -> None:
        """Raise RunStopped if a stop arrived. Other requests stay in the queue for the agent."""
        others: list[Request] = []
        while (request := self._control.take()) is not None:
            if isinstance(request, Stop):
                by = f" by {request.by}" if request.by else ""
                what = f"the run was stopped{by} while its change was verified"
                self._stopped = RunStopped(what, "look at the change, which is kept")
            else:
                others.append(request)
        for request in others:
            self._control.send(request)
        if self._stopped is not None:
            raise self._stopped

    def _rounds_used(self) -> int:
        since = self._log.state.events[self._log.start_index(self._run) :]
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


def open_verifier(prepared: PreparedRun, log: RunLog) -> ChangeVerifier:
    """Return the verifier of a run, which executes checks in sandboxes."""
    request = prepared.request
    run_checks = partial(verify_in_sandboxes, prepared, log)
    return ChangeVerifier(prepared.settings, request.run, request.control, log, run_checks)


def verify_in_sandboxes(prepared: PreparedRun, log: RunLog, patch: Patch) -> Verification:
    """Execute the checks on the change, in sandboxes of its own, and return what they show."""
    settings, workspace = prepared.settings, prepared.workspace
    trees = build_trees(workspace, patch)
    selection = select_checks(
        settings.checks,
        workspace,
        settings.allow_list,
        trees.changed_files,
        patch.tree,
        service_policy(settings, prepared.request.host),
    )
    names = {service.name for check in selection.checks for service in check.services}
    host, run = prepared.request.host, prepared.request.run
    sandboxes = CheckSandboxes(settings, host, run, workspace, trees.commits, tuple(sorted(names)))
    recorded = (e for e in log.state.events if isinstance(e, CheckExecuted))

    def started(runner: CheckRunner) -> None:
        prepared.request.control.interrupt_with(runner.interrupt)

    texts = changed_texts(workspace, patch)
    request = VerificationRequest(
        selection=selection,
        options=RunnerOptions(
            trees=trees.trees,
            environment=sandboxes.digest,
            recorded={event.key: event.execution for event in recorded},
            record=log.stream.add,
            base_results=sandboxes.base_results,
            seconds=settings.timeout_seconds.verification,
            parallel=available_processors() > 1,
        ),
        changed_files=trees.changed_files,
        changed_tests=trees.changed_tests,
        altered_tests=find_altered_tests(text for text in texts if text[0] in trees.changed_tests),
        deleted_tests=trees.deleted_tests,
        renamed_tests=trees.renamed_tests,
        tampering=find_tampering(
            texts,
            unchanged_tests(
                trees.changed_files, ProjectTree.from_commit(workspace.git, workspace.base)
            ),
        ),
        unprepared=sandboxes.unprepared,
        started=started,
    )
    verified = verify_change(request, sandboxes.open)
    for connection in sandboxes.take_connections():
        log.stream.add(connection)
    return verified


def service_policy(settings: Settings, host: RunHost) -> ServicePolicy:
    """Return the services that the operator allows alongside the sandboxes of checks."""
    images = settings.image_options.services
    return ServicePolicy(images, not images or runtime_kind(settings, host) == "docker")


def available_processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0))
