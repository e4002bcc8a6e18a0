"""Links to the server's pages. Each contains a key, so that only people with the link can read it.

A key is derived from the webhook's secret, so that nothing is stored and the link of one page does
not reveal that of another.
"""

import hashlib
import hmac

_KEY_PURPOSE = b"resolver: pages of runs"


def page_key(secret: str, run: str) -> str:
    """Return the key to the page of `run`: 64 hexadecimal digits. secret: that of the webhook."""
    # A separate key is derived first, so that a page's key is never a signature that the webhook
    # accepts.
    page_secret = hmac.digest(secret.encode(), _KEY_PURPOSE, hashlib.sha256)
    return hmac.new(page_secret, run.encode(errors="replace"), hashlib.sha256).hexdigest()


def page_url(public_url: str, secret: str, run: str) -> str:
    """Return the URL of the page of `run`."""
    return f"{public_url}/runs/{run}?key={page_key(secret, run)}"


def operator_key(secret: str) -> str:
    """Return the key that opens the list of all runs. secret: that of the webhook."""
    return page_key(secret, "operator:runs")


def operator_url(public_url: str, secret: str) -> str:
    """Return the URL of the list of all runs for the operator."""
    return f"{public_url}/?key={operator_key(secret)}"
