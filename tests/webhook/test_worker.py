"""How often the dispatcher looks for requests. What it starts is in test_waiting.py."""

from resolver.entrypoints.webhook.worker import (
    DISPATCH_SECONDS,
    MAX_PAUSE_SECONDS,
    PAUSE_SECONDS,
    next_pause,
)


def test_the_more_requests_arrive_in_vain_the_rarer_are_the_looks_at_them() -> None:
    pauses = [PAUSE_SECONDS]
    while len(pauses) < 6:
        pauses.append(next_pause(pauses[-1], is_in_vain=True))
    assert pauses == [0.1, 0.2, 0.4, 0.8, 0.8, 0.8]
    assert next_pause(MAX_PAUSE_SECONDS, is_in_vain=False) == PAUSE_SECONDS
    assert MAX_PAUSE_SECONDS < DISPATCH_SECONDS
