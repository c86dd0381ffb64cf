"""docs/models.md names every provider, profile and adapter there is, with what each needs."""

import re

from edge_agent.models.endpoint import PROFILES
from edge_agent.models.naming import ADAPTERS
from edge_agent.models.providers import PROVIDERS
from tests.docs.documents import ROOT, section

DOCUMENT = ROOT / "docs/models.md"


def named(text: str) -> set[str]:
    return set(re.findall(r"`([^`\n]+)`", text))


def test_the_table_of_providers_is_that_of_the_code() -> None:
    rows = [
        line.strip("| ").split("|") for line in section(DOCUMENT, "Providers").splitlines() if line.startswith("| `")
    ]
    told = {next(iter(named(row[0]))): row for row in rows}
    assert {*told} - {"@cf", "openai-compatible"} == {*PROVIDERS}
    for name, known in PROVIDERS.items():
        _, adapter, key, besides, gateway = told[name]
        assert named(adapter) == {known.adapter}, name
        assert named(key) == {known.key}, name
        assert named(besides) == {*known.options}, name
        assert (gateway.strip() == "yes") == (known.gateway is not None), name


def test_every_profile_and_adapter_is_named() -> None:
    told = named(section(DOCUMENT, "Providers"))
    assert {*PROFILES} <= told
    assert {*ADAPTERS} <= told
