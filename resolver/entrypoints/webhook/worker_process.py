"""The process of `resolver worker`: executes stored requests without accepting deliveries."""

import logging
import threading
from collections.abc import Mapping
from typing import Any

from resolver.entrypoints.webhook.executors import ExecutorKind
from resolver.entrypoints.webhook.process import open_process
from resolver.entrypoints.webhook.stored_app import with_stored_app
from resolver.runs.wiring.models import preload_models

logger = logging.getLogger("resolver.entrypoints.webhook")


def run_worker_process(
    environment: Mapping[str, str],
    options: Mapping[str, Any],
    concurrency: int,
    metrics_address: tuple[str, int] | None = None,
) -> None:
    """Execute requests until a signal arrives. See `open_process` for the arguments and errors.

    The credentials of the App that `resolver serve` has stored are used if the worker's data folder
    has them.
    """
    environment = with_stored_app(environment)
    process = open_process(environment, options, ExecutorKind.WORKER, concurrency, metrics_address)
    process.start()
    logger.info("works for %s, its runs are in %s", process.database.url, process.folder.path)
    preload_models(process.settings)
    threading.Event().wait()
