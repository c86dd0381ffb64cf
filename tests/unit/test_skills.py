"""The rules of a skill, case by case: its name, its fields, their lengths, its files, its folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from edge_agent import ConfigError, Skill
from edge_agent.core.skills import listed, name_fault, path_fault


def skill_md(*fields: str, body: str = "Do it.") -> str:
    return "\n".join(["---", *fields, "---", "", body, ""])


NAMED = ("name: pdf-forms", "description: Fill in forms.")


def a_skill(**fields: Any) -> Skill:
    given: dict[str, Any] = {"name": "a", "description": "d", "instructions": "", **fields}
    return Skill(**given)


# -- names
@pytest.mark.parametrize("name", ["a", "pdf", "pdf-forms", "a1-b2-c3", "2024", "x" * 64, "größe", "技能"])
def test_a_name_may_be(name: str) -> None:
    assert name_fault(name) is None
    assert Skill(name=name, description="d", instructions="").name == name


@pytest.mark.parametrize(
    "name, said",
    [
        ("", "no name"),
        ("   ", "no name"),
        ("x" * 65, "64 are the most"),
        ("PDF", "lower case"),
        ("Pdf-forms", "lower case"),
        ("-pdf", "begin or end with a hyphen"),
        ("pdf-", "begin or end with a hyphen"),
        ("pdf--forms", "two in a row"),
        ("-", "begin or end"),
        ("pdf_forms", "letters, digits and hyphens"),
        ("pdf forms", "letters, digits and hyphens"),
        ("pdf.forms", "letters, digits and hyphens"),
        ("pdf/forms", "letters, digits and hyphens"),
        ("../pdf", "letters, digits and hyphens"),
        ("pdf\u200b", "letters, digits and hyphens"),
        ("pdf🎉", "letters, digits and hyphens"),
    ],
)
def test_a_name_may_not_be(name: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Skill(name=name, description="d", instructions="")


def test_a_name_is_brought_to_its_compatible_form_first() -> None:
    assert Skill(name="ﬁnance", description="d", instructions="").name == "finance"


# -- fields
def test_a_skill_with_every_field_is_read() -> None:
    text = skill_md(
        *NAMED,
        "license: Apache-2.0",
        "compatibility: Needs git",
        "metadata:",
        "  author: example-org",
        '  version: "1.0"',
        "allowed-tools: Bash(git:*) Read docs__*",
        body="# Steps\n\n1. Look.",
    )
    assert Skill.parse(text) == Skill(
        name="pdf-forms",
        description="Fill in forms.",
        instructions="# Steps\n\n1. Look.",
        license="Apache-2.0",
        compatibility="Needs git",
        metadata={"author": "example-org", "version": "1.0"},
        allowed_tools=("Bash(git:*)", "Read", "docs__*"),
    )


@pytest.mark.parametrize(
    "line, value",
    [
        ("description: Plain text, with commas.", "Plain text, with commas."),
        ('description: "Quoted: with a colon"', "Quoted: with a colon"),
        ("description: 'It''s quoted'", "It's quoted"),
        ('description: "Two\\nlines and \\"quotes\\""', 'Two\nlines and "quotes"'),
        ("description: text # a comment", "text"),
        ("description: C# is no comment", "C# is no comment"),
        ("description: see https://example.com/a", "see https://example.com/a"),
        ("description: |\n  One.\n  Two.", "One.\nTwo."),
        ("description: >\n  One\n  line.\n\n  Two.", "One line.\nTwo."),
        ("description: >-\n  One\n  line.", "One line."),
        ("description:\n  on the next line", "on the next line"),
        ("description: begun here\n  and gone on there", "begun here and gone on there"),
        ("description: 1.0", "1.0"),
        ("description: no", "no"),
    ],
)
def test_a_text_may_be_written(line: str, value: str) -> None:
    assert Skill.parse(skill_md("name: pdf-forms", line)).description == value


@pytest.mark.parametrize(
    "line, tools",
    [
        ("allowed-tools: read write", ("read", "write")),
        ("allowed-tools: [read, write]", ("read", "write")),
        ("allowed-tools:\n  - read\n  - write", ("read", "write")),
        ("allowed-tools:\n- read\n- docs__*", ("read", "docs__*")),
        ("allowed-tools: Bash(git status) read", ("Bash(git status)", "read")),
        ("allowed-tools: read, write", ("read", "write")),
        ("allowed-tools: []", ()),
    ],
)
def test_allowed_tools_may_be_written(line: str, tools: tuple[str, ...]) -> None:
    assert Skill.parse(skill_md(*NAMED, line)).allowed_tools == tools


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "three dashes"),
        ("# A skill\n", "three dashes"),
        ("---\nname: pdf-forms\ndescription: d\n", "no second line of three dashes"),
        (skill_md("description: d"), "needs a name"),
        (skill_md("name: pdf-forms"), "needs a description"),
        (skill_md("name: pdf-forms", "description:"), "needs a description"),
        (skill_md(*NAMED, "name: other"), "a second time"),
        (skill_md(*NAMED, "version: 1"), "belong under metadata"),
        (skill_md(*NAMED, "metadata: text"), "not a map of texts"),
        (skill_md(*NAMED, "allowed-tools:"), "allowed-tools that is blank; write"),
        (skill_md(*NAMED, 'allowed-tools: " "'), "allowed-tools that is blank; write"),
        (skill_md(*NAMED, "metadata:\n  a: 1\n  a: 2"), "twice"),
        (skill_md(*NAMED, "metadata:\n  a:\n    b: 1"), "nested too deep"),
        (skill_md("name: pdf-forms", "description:\n  a: b"), "not a text"),
        (skill_md("name: [a, b]", "description: d"), "not a text"),
        (skill_md("name: pdf-forms", "description: a: b"), "in quotes"),
        (skill_md("name: pdf-forms", 'description: "open'), "not closed"),
        (skill_md("name: pdf-forms", "description: &anchor d"), "in quotes"),
        (skill_md("name: pdf-forms", "description: !!str d"), "in quotes"),
        (skill_md("name: pdf-forms", 'description: "\\x41"'), "cannot be read"),
        (skill_md(*NAMED, "just words"), "line 4 is no field"),
        (skill_md(*NAMED, "allowed-tools: read ) write"), "names of tools"),
        (skill_md(*NAMED, "compatibility: ''"), "1 to 500"),
    ],
)
def test_a_front_matter_that_breaks_a_rule_says_which(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Skill.parse(text)


@pytest.mark.parametrize(
    "fields, said",
    [
        ({"description": "d" * 1_025}, "1024 are the most"),
        ({"description": " "}, "no description"),
        ({"compatibility": "c" * 501}, "1 to 500"),
        ({"instructions": "i" * 262_145}, "262144 bytes"),
        ({"files": {"a.md": "é" * 131_073}}, "262144 bytes"),
        ({"files": {f"{number}.md": "" for number in range(65)}}, "64 are the most"),
    ],
)
def test_what_is_too_long_says_how_long_it_may_be(fields: Mapping[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        a_skill(**fields)


def test_what_is_just_as_long_as_it_may_be_is_taken() -> None:
    skill = Skill(name="a", description="d" * 1_024, compatibility="c" * 500, instructions="i" * 262_144)
    assert len(listed(skill.description)) == 300
    assert Skill.parse(f"\ufeff{skill_md(*NAMED)}".replace("\n", "\r\n")).instructions == "Do it."


# -- files
@pytest.mark.parametrize("path", ["a.md", "references/rates.md", "scripts/run.py", "a/b/c.txt", "..a.md", "ü ö.md"])
def test_a_path_may_be(path: str) -> None:
    assert path_fault(path) is None


@pytest.mark.parametrize(
    "path",
    [
        "",
        "SKILL.md",
        "../a.md",
        "a/../../b.md",
        "a/./b.md",
        "a//b.md",
        "/etc/passwd",
        "C:/a.md",
        "a\\b.md",
        "%2e%2e/a.md",
        "a/%2e%2e%2fb.md",
        "a\0.md",
        "a\n.md",
        "x" * 201,
        "a/",
    ],
)
def test_a_path_may_not_be(path: str) -> None:
    assert path_fault(path)
    with pytest.raises(ConfigError, match="cannot be"):
        Skill(name="a", description="d", instructions="", files={path: ""})


# -- folders
def folder(path: Path, name: str = "pdf-forms") -> Path:
    made = path / name
    (made / "references").mkdir(parents=True)
    (made / "SKILL.md").write_text(skill_md(*NAMED))
    (made / "references" / "rates.md").write_text("10 %")
    return made


def test_a_folder_is_read_with_its_texts_and_without_what_is_no_text(tmp_path: Path) -> None:
    made = folder(tmp_path)
    (made / "logo.png").write_bytes(b"\x89PNG\xff")
    (made / ".hidden").write_text("x")
    assert Skill.from_dir(made).files == {"references/rates.md": "10 %"}


def test_a_folder_is_named_like_its_skill(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="its folder is named 'other'"):
        Skill.from_dir(folder(tmp_path, "other"))


def test_a_folder_with_a_link_in_it_is_refused(tmp_path: Path) -> None:
    made = folder(tmp_path)
    (tmp_path / "outside.md").write_text("secret")
    (made / "inside.md").symlink_to(tmp_path / "outside.md")
    with pytest.raises(ConfigError, match=r"inside\.md: it is a link"):
        Skill.from_dir(made)


def test_a_folder_without_a_skill_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"SKILL\.md cannot be read: No such file"):
        Skill.from_dir(tmp_path)
