"""The certificates by which HTTPS clients verify servers, loaded once per process."""

import ssl
from collections.abc import Mapping
from functools import cache

import httpx


def trusted_certificates(environment: Mapping[str, str]) -> ssl.SSLContext:
    """Return the context that httpx would create in this environment, the same one each time.

    Loading the bundle of authorities takes 30 ms of CPU time, and by default every client loads it
    again, even if it only talks plain HTTP.
    """
    return _load(environment.get("SSL_CERT_FILE", ""), environment.get("SSL_CERT_DIR", ""))


@cache
def _load(file: str, directory: str) -> ssl.SSLContext:
    if file:
        return ssl.create_default_context(cafile=file)
    if directory:
        return ssl.create_default_context(capath=directory)
    return httpx.create_ssl_context(trust_env=False)
