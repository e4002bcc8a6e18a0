"""Resolves the symlinks of a tree within the tree, without a file system."""

from collections.abc import Mapping

_MOST_HOPS = 40
"""Maximum number of links that are followed, as in Linux.

A longer chain is treated as a loop: https://man7.org/linux/man-pages/man7/path_resolution.7.html
"""


def resolve_symlink(links: Mapping[bytes, bytes], link: bytes) -> bytes | None:
    """Return the path in the repository that `link` leads to, None if it leads outside.

    links: target of every symlink of the tree. An absolute target, a path above the root, and
    anything in `.git` are outside. A link into a loop leads to itself.
    """
    place = link.split(b"/")[:-1]
    rest = [link.split(b"/")[-1]]
    hops = 0
    while rest:
        name = rest.pop(0)
        if name in (b"", b"."):
            continue
        if name == b"..":
            if not place:
                return None
            place.pop()
            continue
        if name.lower() == b".git":
            return None
        place.append(name)
        target = links.get(b"/".join(place))
        if target is None:
            continue
        hops += 1
        if hops > _MOST_HOPS:
            return link
        if target.startswith(b"/"):
            return None
        place.pop()
        rest = target.split(b"/") + rest
    return b"/".join(place)


def escaping_symlinks(links: Mapping[bytes, bytes]) -> set[tuple[bytes, bytes]]:
    """Return the links that lead out of the repository, with their targets."""
    return {
        (link, target) for link, target in links.items() if resolve_symlink(links, link) is None
    }
