"""Masking of differences between two executions of the same action.

There are two levels: `normalize_output` masks what differs between any two executions and nobody
chose (temporary paths, memory addresses, hashes, times, durations); `mask_numbers` masks all
numbers too.
"""

import re

_NOISE = re.compile(
    r"/(?:tmp|var/tmp|var/folders|dev/shm)/[\w.+@%/-]+"  # temporary paths
    r"|\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"  # UUIDs
    r"|\b0x[0-9a-fA-F]+\b"  # addresses in memory
    r"|\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b"  # hashes
    r"|\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?(?:Z|[+-]\d\d:?\d\d)?"  # dates
    r"|\b\d\d?:\d\d(?::\d\d(?:[.,]\d+)?)?\b"  # times of day
    r"|\b1[5-9]\d{8}(?:\.\d+|\d{3})?\b"  # seconds and milliseconds since 1970, from 2017 on
    r"|\b\d+(?:\.\d+)?\s?(?:ns|us|µs|ms|s|secs?|seconds?|mins?|minutes?|h|hours?)\b"  # durations
    r"|\b(?:pid|PID)[ =:]+\d+"
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")

LONGEST = 65_536
"""Maximum length that is compared, in characters.

Of a longer text the head, the tail and the length are kept.
"""


def normalize_output(text: str) -> str:
    """Return `text` with everything masked that differs between executions of one command."""
    if len(text) > LONGEST:
        half = LONGEST // 2
        text = f"{text[:half]}[{len(text) - LONGEST}]{text[-half:]}"
    return _NOISE.sub("#", text)


def mask_numbers(text: str) -> str:
    """Return `text`, already normalized, with all numbers masked."""
    return _NUMBER.sub("#", text)
