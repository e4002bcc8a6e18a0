"""Which instruction files are read, and how much of them."""

from resolver.memory.instructions import FILES, MAX_TOTAL, read_instructions


def test_all_known_files_are_read_in_order_under_their_names() -> None:
    found = read_instructions({name: f"in {name}".encode() for name in FILES}.get)
    assert found.sources == FILES
    assert found.text.startswith("## AGENTS.md\n\nin AGENTS.md\n\n## .github/")
    assert found.as_result().sources == FILES


def test_a_repository_without_any_gives_nothing() -> None:
    found = read_instructions(lambda _: None)
    assert (found.text, found.sources) == ("", ())


def test_two_files_with_one_content_are_told_once() -> None:
    found = read_instructions({"AGENTS.md": b"use tabs\n", "CLAUDE.md": b"use tabs"}.get)
    assert found.sources == ("AGENTS.md",)


def test_a_link_to_another_of_the_files_is_not_taken_for_text() -> None:
    files = {"AGENTS.md": b"x", "CLAUDE.md": b"AGENTS.md", ".cursorrules": b"./AGENTS.md"}
    assert read_instructions(files.get).sources == ("AGENTS.md",)


def test_front_matter_of_a_skill_file_is_left_out() -> None:
    text = b"---\ntriggers: [x]\n---\nuse tabs"
    found = read_instructions({".openhands/microagents/repo.md": text}.get)
    assert "triggers" not in found.text and "use tabs" in found.text


def test_a_rule_at_the_top_of_a_file_is_not_front_matter() -> None:
    assert "text" in read_instructions({"AGENTS.md": b"---\ntext without an end"}.get).text


def test_huge_files_are_bounded_and_name_the_whole() -> None:
    found = read_instructions({name: name.encode() * 50_000 for name in FILES}.get)
    assert len(found.text) < MAX_TOTAL + 2000
    assert "The whole file is AGENTS.md." in found.text


def test_bytes_that_are_not_utf8_do_no_harm() -> None:
    assert "caf\ufffd" in read_instructions({"AGENTS.md": b"caf\xe9"}.get).text
