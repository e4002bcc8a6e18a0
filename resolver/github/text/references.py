"""Finds the issues and pull requests that a text references, as GitHub links them, except in code.

Source:
https://docs.github.com/en/get-started/writing-on-github/working-with-advanced-formatting/autolinked-references-and-urls
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from resolver.github.text.hidden_text import code_regions

_OWNER = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})"
_NAME = r"[A-Za-z0-9_.-]{1,100}"
_NUMBER = r"[1-9][0-9]{0,8}(?![A-Za-z0-9_])"
_FOUND = re.compile(
    rf"(?P<url>https?://(?P<host>[A-Za-z0-9.:-]{{1,255}})/(?P<url_repository>{_OWNER}/{_NAME})"
    rf"/(?:issues|pull)/(?P<url_number>{_NUMBER}))"
    rf"|(?<![\w/.#&-])(?P<repository>{_OWNER}/{_NAME})?#(?P<number>{_NUMBER})"
    rf"|(?<![\w/.#&-])(?i:gh)-(?P<gh>{_NUMBER})"
)


class Named(NamedTuple):
    """A reference. `repository` is OWNER/NAME as written, "" for the repository of the text."""

    repository: str
    number: int


def references_in(text: str, host: str) -> Iterator[Named]:
    """Yield the references in order, including duplicates.

    `host` is the forge's host name, with the port if it has one. URLs of other hosts are skipped.
    """
    regions = iter(code_regions(text))
    region = next(regions, None)
    for found in _FOUND.finditer(text):
        while region is not None and region[1] <= found.start():
            region = next(regions, None)
        if region is not None and region[0] <= found.start():
            continue
        if found["url"]:
            if found["host"].casefold() == host.casefold():
                yield Named(found["url_repository"], int(found["url_number"]))
        else:
            yield Named(found["repository"] or "", int(found["number"] or found["gh"]))
