"""Tests of the compiled templates that are kept between runs."""

from pathlib import Path

from jinja2 import BytecodeCache, Environment, FileSystemLoader
from jinja2.bccache import Bucket

from resolver.config.templates import CompiledTemplates


class Counting(CompiledTemplates):
    """Counts the templates that had to be compiled."""

    compiled = 0

    def dump_bytecode(self, bucket: Bucket) -> None:
        self.compiled += 1
        super().dump_bytecode(bucket)


def rendered(folder: Path, cache: BytecodeCache) -> str:
    """The template as a new process renders it."""
    environment = Environment(loader=FileSystemLoader(folder), bytecode_cache=cache)
    return environment.get_template("greeting.j2").render(name="Ada")


def test_a_template_is_compiled_once_and_again_after_a_change(tmp_path: Path) -> None:
    template, cache = tmp_path / "greeting.j2", Counting(tmp_path / "__pycache__", writes=True)
    template.write_text("Hello {{ name }}.")
    assert [rendered(tmp_path, cache) for _ in range(2)] == ["Hello Ada."] * 2
    assert cache.compiled == 1
    template.write_text("Bye {{ name }}.")
    assert rendered(tmp_path, cache) == "Bye Ada."
    assert cache.compiled == 2


def test_without_a_place_to_write_each_process_compiles(tmp_path: Path) -> None:
    (tmp_path / "greeting.j2").write_text("Hello {{ name }}.")
    cache = Counting(tmp_path / "nowhere" / "__pycache__", writes=True)
    assert [rendered(tmp_path, cache) for _ in range(2)] == ["Hello Ada."] * 2
    assert cache.compiled == 2


def test_nothing_is_written_unless_asked(tmp_path: Path) -> None:
    (tmp_path / "greeting.j2").write_text("Hello {{ name }}.")
    folder = tmp_path / "__pycache__"
    assert rendered(tmp_path, CompiledTemplates(folder, writes=False)) == "Hello Ada."
    assert not folder.exists()
    assert rendered(tmp_path, CompiledTemplates(folder, writes=True)) == "Hello Ada."
    cache = Counting(folder, writes=False)
    assert rendered(tmp_path, cache) == "Hello Ada."
    assert cache.compiled == 0


def test_a_damaged_file_is_compiled_again(tmp_path: Path) -> None:
    (tmp_path / "greeting.j2").write_text("Hello {{ name }}.")
    cache = Counting(tmp_path / "__pycache__", writes=True)
    rendered(tmp_path, cache)
    [kept] = (tmp_path / "__pycache__").iterdir()
    kept.write_bytes(kept.read_bytes()[:40])
    assert rendered(tmp_path, cache) == "Hello Ada."
    assert cache.compiled == 2
