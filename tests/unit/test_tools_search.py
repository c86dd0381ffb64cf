"""Ranking: the same words find the same tools, in an order that can be worked out by hand."""

from dataclasses import dataclass

import pytest

from edge_agent.core.messages import ToolSpec
from edge_agent.tools.tool_search import search_tools, words


@dataclass(frozen=True)
class Entry:
    spec: ToolSpec
    server: str | None = None


def entry(name: str, description: str = "", server: str | None = None) -> Entry:
    return Entry(ToolSpec(name=name, description=description, parameters={}), server)


CATALOGUE = (
    entry("calculator", "Work out a sum."),
    entry("docs__searchPages", "Look for pages.", "docs"),
    entry("docs__read", "Read a page that was found by a search.", "docs"),
    entry("billing__search_invoices", "Find invoices of a customer.", "billing"),
    entry("billing__create_invoice", "Make an invoice.", "billing"),
)


def found(query: str, *, server: str | None = None, limit: int = 8) -> list[str]:
    return [tool.spec.name for tool in search_tools(CATALOGUE, query, server=server, limit=limit)]


@pytest.mark.parametrize(
    "query, names",
    [
        ("invoice", ["billing__search_invoices", "billing__create_invoice"]),  # 3 + 1 each, in catalogue order
        ("search invoices", ["billing__search_invoices", "docs__searchPages", "docs__read"]),  # 3 + 3 + 1, 3, 1
        ("billing", ["billing__search_invoices", "billing__create_invoice"]),  # 2, by the server alone
        ("docs page", ["docs__searchPages", "docs__read"]),  # 2 + 3 + 1, 2 + 1
        ("page page PAGE", ["docs__searchPages", "docs__read"]),  # a word counts once
        ("ca", []),  # too short for a prefix
        ("cal", ["calculator"]),
        ("invoicesx", []),
        ("", []),
        ("!?", []),
    ],
)
def test_words_count_by_where_they_stand(query: str, names: list[str]) -> None:
    assert found(query) == names


def test_a_server_and_a_limit_narrow_it() -> None:
    assert found("search", server="DOCS") == ["docs__searchPages", "docs__read"]
    assert found("search", limit=1) == found("search", limit=-3) == ["docs__searchPages"]
    assert found("search", server="nowhere") == []
    many = [entry(f"tool_{number}", "same") for number in range(50)]
    assert [tool.spec.name for tool in search_tools(many, "same", limit=99)] == [f"tool_{n}" for n in range(20)]
    assert len(search_tools(many, "same")) == 8


def test_humps_acronyms_and_letters_of_any_language_are_words() -> None:
    assert words("getHTTPResponse2 grüne_Äpfel-3d") == {"get", "http", "response2", "grüne", "äpfel", "3d"}
