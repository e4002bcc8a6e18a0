"""Determines which files a piece of code writes (a cell, or `python -c`), from its text alone."""

import re

from resolver.security.shell.places import WrittenPaths, of_paths

MOST_CODE = 50_000
"""Maximum characters of code that are analyzed."""

_NAMED = re.compile(
    r"\b(?:create_file|edit_file_by_replace|insert_content_at_line|append_file)"
    r"\(\s*(['\"])(.{1,500}?)\1"
    r"|open\(\s*(['\"])([^'\"]{1,500})\3\s*,\s*['\"](?:[wax]|r?b?\+|rb\+|r\+)"
    r"|Path\(\s*(['\"])([^'\"]{1,500})\5\s*\)\.write_(?:text|bytes)"
    r"|(?:writeFile|writeFileSync|File\.write|file_put_contents)\(\s*(['\"])([^'\"]{1,500})\7"
)
"""Matches writing to a file whose name is given as a literal."""

_UNNAMED = re.compile(
    r"\.write_(?:text|bytes)\(|\bopen\([^)]{1,300}['\"][rb]*[wax+]"
    r"|\bshutil\.|\bos\.(?:rename|replace|remove|unlink)\(|\.(?:unlink|rename)\("
    r"|\bwriteFile|\bFile\.write\b|\bfile_put_contents\b|\binplace=True"
)
"""Matches writing to a file whose name is not known."""

_HANDLE = re.compile(r"(?<!stdout)(?<!stderr)\.write(?:lines)?\(")
"""Matches a write to an open file. The name is given where the file was opened."""


def written_in(code: str, root: str = "") -> WrittenPaths:
    """Return what the code may write in the repository at `root`. Shell lines of a cell (`!sed -i`)
    are not analyzed."""
    text = code[:MOST_CODE]
    named = [found[2] or found[4] or found[6] or found[8] for found in _NAMED.finditer(text)]
    unknown = _UNNAMED.search(_NAMED.sub("", text)) is not None
    unknown = unknown or (not named and _HANDLE.search(text) is not None)
    return of_paths(named, root, unknown=unknown)
