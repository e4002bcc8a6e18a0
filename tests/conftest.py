"""Fixtures that every room's tests may use: the real parts."""

from pathlib import Path

PARTS = Path(__file__).parent / "parts"

pytest_plugins = [
    f"tests.parts.{path.stem}" for path in sorted(PARTS.glob("*.py")) if path.stem != "__init__"
]
