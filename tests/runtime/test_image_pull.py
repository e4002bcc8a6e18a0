"""Tests of the progress of an image's pull, with the entries that an engine sends."""

from resolver.runtime.image_pull import PullProgress


def entry(
    layer: str, status: str, current: object = None, total: object = None
) -> dict[str, object]:
    return {"id": layer, "status": status, "progressDetail": {"current": current, "total": total}}


def test_the_bytes_of_all_layers_add_up() -> None:
    progress = PullProgress()
    progress.add({"status": "Pulling from library/python", "id": "3.12"})
    assert str(progress) == ""
    progress.add(entry("a", "Downloading", 5_000_000, 20_000_000))
    progress.add(entry("b", "Downloading", 1_000_000, 10_000_000))
    assert str(progress) == "6 of 30 MB"
    progress.add({"id": "a", "status": "Download complete", "progressDetail": {}})
    progress.add(entry("a", "Extracting", 1, 20_000_000))
    assert str(progress) == "21 of 30 MB"
