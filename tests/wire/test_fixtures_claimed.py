"""Every recording among the fixtures is read by the tests of exactly one adapter, and none is left out."""

import os
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import Figure
from tests.wire import test_anthropic_fixtures, test_google_fixtures, test_openai_chat_fixtures

FIXTURES = Path(os.environ.get("EDGE_AGENT_FIXTURES", Path(__file__).parents[3] / "shared" / "fixtures")) / "wire"
CLAIMS = {
    "openai_chat": set(test_openai_chat_fixtures.EXPECTED),
    "anthropic": set(test_anthropic_fixtures.EXPECTED),
    "google": set(test_google_fixtures.EXPECTED),
    # Read by test_openai_chat_failures.py: gateways pass the errors of any provider on.
    "errors": {"google-429-retry-info.json", "reasoning-model-legacy-parameter-error.json"},
}


def test_every_recording_is_claimed_by_one_adapter(figure: Figure) -> None:
    if not FIXTURES.is_dir():
        pytest.skip(f"the recorded data is not there: {FIXTURES} (set EDGE_AGENT_FIXTURES)")
    files = {path.name for path in FIXTURES.iterdir() if not path.name.startswith("LICENSE")}
    claimed = Counter(name for names in CLAIMS.values() for name in names)
    counts = ", ".join(f"{adapter} {len(names)}" for adapter, names in CLAIMS.items())
    figure(f"recordings: {len(files)}; {counts}; {len(files - claimed.keys())} skipped")
    assert claimed.keys() == files
    assert set(claimed.values()) == {1}
