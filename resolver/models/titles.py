"""Says which line can be the title of a change."""

import re

MAX_TITLE_CHARACTERS = 72
"""Maximum length of the title of a change in characters, as of the subject of a commit."""

_MARKUP = re.compile(r"^(?:#{1,6}|[-*+>]|\d+[.)])\s|\*\*|\]\(|```")
_NUMBER_ALONE = re.compile(r"(?:(?:fix|close|resolve)\w*\W+)?(?:issue\W*)?#?\d+\W*", re.IGNORECASE)


def is_usable_title(title: str) -> bool:
    """Return True for one line of at most 72 characters without markdown.

    Inline code is accepted. The number of an issue alone is not: it does not say what changed.
    """
    return (
        0 < len(title.strip()) <= MAX_TITLE_CHARACTERS
        and "\n" not in title.strip()
        and not _MARKUP.search(title.strip())
        and not _NUMBER_ALONE.fullmatch(title.strip())
    )
