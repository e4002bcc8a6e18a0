"""Levels what differs between two otherwise equal doings of the same thing.

Two strengths: `without_noise` takes out what no two runs share and nobody chose (temporary paths,
addresses, hashes, times, durations); `without_numbers` takes out every number as well.
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
"""Characters that are looked at; of a longer text its two ends and its length."""


def normalize_output(text: str) -> str:
    """`text` without what differs between two runs of the same command."""
    if len(text) > LONGEST:
        half = LONGEST // 2
        text = f"{text[:half]}[{len(text) - LONGEST}]{text[-half:]}"
    return _NOISE.sub("#", text)


def mask_numbers(text: str) -> str:
    """`text`, already without noise, without its numbers as well."""
    return _NUMBER.sub("#", text)
