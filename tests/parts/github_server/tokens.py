"""Credentials in the forms that GitHub gives out. Random: a test can search for them."""

import secrets
import string

ALPHABET = string.ascii_letters + string.digits


def _random(length: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


def new_token(prefix: str, long: bool = False) -> str:
    """`prefix` is ghp_, gho_ or ghs_; long: the newer form, an id and a signed part."""
    if not long:
        return prefix + _random(36)
    return f"{prefix}{secrets.randbelow(10**7)}_eyJ{_random(80)}.eyJ{_random(160)}.{_random(250)}"
