"""Reads the sections of an INI file such as tox.ini, in time linear in its length.

Python's configparser refuses files that tox and pytest accept, and its patterns need quadratic time
for some lines.
"""


def read_ini(text: str) -> dict[str, dict[str, str]]:
    """Return the values by section and key. Any text gives a result.

    The lines of a value are joined by line breaks, without comments and indentation.
    """
    sections: dict[str, dict[str, list[str]]] = {}
    values: dict[str, list[str]] | None = None
    lines: list[str] | None = None
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped[0] in "#;":
            continue
        if line[0] == "[" and "]" in line:
            values = sections.setdefault(line[1 : line.index("]")].strip(), {})
            lines = None
        elif line[0] in " \t":
            if lines is not None:
                lines.append(stripped)
        elif values is not None:
            at = min((at for at in (line.find("="), line.find(":")) if at >= 0), default=-1)
            lines = None
            if at >= 0:
                first = line[at + 1 :].strip()
                lines = values.setdefault(line[:at].strip(), [])
                lines += [first] if first else []
    return {
        section: {key: "\n".join(parts) for key, parts in found.items()}
        for section, found in sections.items()
    }
