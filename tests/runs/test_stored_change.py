"""Tests of executing a run whose change an earlier attempt has stored: no sandbox starts."""

from pathlib import Path

import pytest

from resolver.errors import WorkspaceError
from resolver.events.observations import AgentStateChanged
from resolver.events.run_log import RunLog
from resolver.models.run import ExportedChange, RunState
from resolver.runs.execute import ExecutionRequest, execute
from tests.git.scenario import make_repository, open_scenario
from tests.git.test_bundle import Forge
from tests.runs.plain_values import prepared_run, run_request


@pytest.fixture
def stored(log: RunLog, tmp_path: Path) -> ExecutionRequest:
    """A request whose output folder holds the change: a new file."""
    scenario = open_scenario(make_repository(tmp_path / "source"), tmp_path)
    forge = Forge(scenario, tmp_path)
    tree = forge.tree(("100644", "new.txt", forge.object("blob", b"x\n")))
    commit = forge.commit(tree, forge.base)
    request = run_request(tmp_path)
    request.output.keep_change(
        ExportedChange(commit=commit, tree=tree, bundle=forge.bundle(commit))
    )
    log.stream.add(AgentStateChanged(state=RunState.FINISHED))
    return ExecutionRequest(prepared_run(request, scenario.workspace), log, tmp_path)


@pytest.mark.attack
def test_a_bundle_that_was_tampered_with_is_refused(stored: ExecutionRequest) -> None:
    """The kept change of a run is damaged before it is published: refused."""
    change = stored.prepared.request.output.change
    assert change is not None and change.bundle is not None
    bundle = change.bundle
    bundle.write_bytes(bundle.read_bytes()[:-20])
    with pytest.raises(WorkspaceError, match="can't be used"):
        execute(stored)
