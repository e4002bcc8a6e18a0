"""Calls in a thread that nobody has to wait for."""

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def call_in_background(function: Callable[[], T], name: str) -> Future[T]:
    """Call the function in a thread named `name` and return its future result.

    Unlike the threads of an executor, it does not keep the process from ending.
    """
    future: Future[T] = Future()
    context = contextvars.copy_context()  # the log has the id of the run for this thread, too

    def call() -> None:
        try:
            result = context.run(function)
        except BaseException as error:  # noqa: BLE001 - raised by `Future.result`
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=call, name=name, daemon=True).start()
    return future
