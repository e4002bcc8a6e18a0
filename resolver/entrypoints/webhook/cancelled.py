"""Writes the outcome of a run that ends without being started again, because it was stopped while
the server was down or was interrupted too often. The run's page shows it as active until then."""

import logging
from pathlib import Path

from resolver.controller.outcome import derive_outcome
from resolver.errors import ResolverError
from resolver.events.reading import read_log
from resolver.events.run_log import is_resumable
from resolver.events.state import State
from resolver.github.comments.report import Report
from resolver.models.run import Publication
from resolver.models.verification import UNFINISHED
from resolver.runs.outcome_json import OutcomeFile, build_outcome_file
from resolver.runs.output import Output

logger = logging.getLogger("resolver.entrypoints.webhook")


def write_cancelled_outcome(folder: Path, report: Report) -> None:
    """Write outcome.json into the run's folder, if there is one and the run is not over.

    report: with the failure that ends the run. Errors are logged.
    """
    if not folder.is_dir():
        return
    try:
        output = Output(folder, resume=True)
        try:
            if output.outcome is None:
                output.write_outcome(_outcome(output, report))
        finally:
            output.close()
    except (ResolverError, OSError) as error:
        logger.error("how run %s ended is not noted: %s", report.run, error)


def _outcome(output: Output, report: Report) -> OutcomeFile:
    state = State.fold(read_log(output.log)) if is_resumable(output.log) else None
    asked = output.request
    continuation = asked.continuation if asked else None
    return build_outcome_file(
        run=report.run,
        trigger=report.trigger,
        model=report.model,
        base=None,
        outcome=derive_outcome(state) if state else None,
        patch=None,
        publication=Publication(),
        earlier=continuation.publication if continuation else Publication(),
        evidence=UNFINISHED.evidence(),
        failure=report.failure,
        exit_code=1,
        divergences=[],
        spent=state,
    )
