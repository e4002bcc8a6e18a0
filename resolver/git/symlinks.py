"""Where a tree's symlinks lead, followed through the tree itself and never on a disk."""

from collections.abc import Mapping

_MOST_HOPS = 40
"""As Linux: a longer chain is a loop, which nothing can follow."""


def resolve_symlink(links: Mapping[bytes, bytes], link: bytes) -> bytes | None:
    """Path inside the repository that `link` leads to, None when it leads out of it.

    links: every symlink of the tree with its target. Out is: an absolute target, a parent of the
    root, or anything in `.git`. A link into a loop leads to itself.
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
    """Links (with their targets) that lead out of the repository."""
    return {
        (link, target) for link, target in links.items() if resolve_symlink(links, link) is None
    }
