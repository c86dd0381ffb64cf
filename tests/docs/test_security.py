"""docs/security.md: each claim names a test that is there."""

import re

from tests.docs.documents import ROOT

DOCUMENT = ROOT / "docs" / "security.md"


def test_every_test_that_is_named_exists_in_its_file() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    found = re.findall(r"`(tests/[\w/]+\.py)`:\s+((?:`test_\w+`(?:,\s+)?)+)", text)
    named = [(file, name) for file, names in found for name in re.findall(r"`(test_\w+)`", names)]
    print(f"{len(named)} claims with their tests")
    assert len(named) == len(re.findall(r"`test_\w+`", text)), "a test stands after its file"
    for file, name in named:
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), f"{file}: {name}"
