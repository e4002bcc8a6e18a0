"""Tests of modules that are imported on first use."""

import subprocess
import sys

CODE = """
import sys
from resolver.config.lazy_module import import_lazy_modules, lazy_module

colors, tabnanny = lazy_module("colorsys"), lazy_module("tabnanny")
print("colorsys" in sys.modules, "tabnanny" in sys.modules)
print(colors.rgb_to_hsv(0, 0, 0), "colorsys" in sys.modules, "tabnanny" in sys.modules)
import_lazy_modules()
print("tabnanny" in sys.modules, hasattr(tabnanny, "nothing"))
missing = lazy_module("no_such_module")
try:
    missing.anything
except ModuleNotFoundError as error:
    print(error.name)
"""


def test_a_module_is_imported_when_it_is_used_or_when_all_are() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "False False",
        "(0.0, 0.0, 0) True False",
        "True False",
        "no_such_module",
    ], done.stderr
