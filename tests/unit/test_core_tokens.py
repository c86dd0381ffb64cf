"""The estimate of tokens against a real tokenizer: never below its count on ordinary texts, at most 1.4 times it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_agent.core.tokens import Meter, estimate, passes
from tests.conftest import Figure
from tests.tokenizer import count

USERS = [
    {"id": n, "name": f"user {n}", "mail": f"u{n}@example.com", "ok": n % 2 == 0, "score": n * 1.5} for n in range(9)
]
CALIBRATION = {
    "English": (
        "The town lay still in the early light, and nobody had yet crossed the square. When the baker opened her door, "
        "the smell of bread drifted down to the harbour, where three men were mending nets. They didn't look up; they "
        "had known that smell for forty years, and it told them, better than any clock, that it was time to go home."
    ),
    "English, dry": (
        "Usage: report [options] FILE. Reads the measurements, drops those that are incomplete, and prints a summary "
        "per station. Options: --since DATE (default: yesterday), --format (table or csv), --quiet. Exit status is 0 "
        "if everything was read, 1 if some lines were skipped, 2 if the file couldn't be opened."
    ),
    "German": (
        "Die Donaudampfschifffahrtsgesellschaft veröffentlichte gestern überraschend ihren Geschäftsbericht. Größere "
        "Überschüsse würden für künftige Anschaffungen zurückgelegt, hieß es aus der Geschäftsführung. Über die Höhe "
        "der Rücklagen wollte der Vorstand keine Auskunft geben; das entscheide die Hauptversammlung im Frühjahr."
    ),
    "French": (
        "Hier après-midi, nous avons longuement discuté de l'avenir de l'école. Où qu'elle se trouve, disait-elle, une "
        "bibliothèque vaut mieux qu'un discours ; c'est là que l'élève s'émerveille et que le maître se tait."
    ),
    "Chinese": (
        "昨天下午、我们在北京的一家小咖啡馆里讨论了人工智能的未来发展方向、以及它对教育的影响。老师们认为。"
        "学生应该先学会提问。然后再学会使用工具。否则答案再快也没有意义。"
    ),
    "Japanese": "昨日の午後、私たちは人工知能の将来について話し合いました。学生はまず質問することを学ぶべきです。",
    "emoji": "Great job! 👍🎉🚀 See you soon 😀😃😄 what a day 👩‍👩‍👧‍👦 🇩🇪 ❤️ love it 🔥🔥🔥 thanks 🙏 👋",
    "Python": (
        "async def read(self, limit: int | None = None) -> list[Record]:\n"
        '    """Every record in order, by one select."""\n'
        "    rows = self._sql('select seq, key, json from records order by seq limit ?', limit or -1)\n"
        "    found: list[Record] = []\n"
        "    for seq, key, text in rows:\n"
        "        event = decode(text)\n"
        "        if event.kind not in self.hidden_kinds:\n"
        "            found.append(Record(seq=seq, key=key, event=event))\n"
        "    return found\n"
    ),
    "JavaScript": (
        "export function debounce(callback, wait = 250) {\n  let timer = null;\n  return (...args) => {\n"
        "    clearTimeout(timer);\n    timer = setTimeout(() => callback.apply(this, args), wait);\n  };\n}\n"
    ),
    "JSON": json.dumps({"users": USERS}),
    "JSON, indented": json.dumps({"users": USERS}, indent=2),
    "JSON, dense": json.dumps({"users": USERS}, separators=(",", ":")),
    "numbers": "3.14159265358979 1234567890 2024-01-31T08:15:00Z 17 * 23 = 391, 99.99 % of 12 000; -1.5e-10, 42, 7",
    "a table": "\n".join(f"| {n:3} | {n * n:6} | {n / 7:8.4f} |" for n in range(1, 30)),
    "white space": "a\n\n\n   b\t\t\tc      d\n        e\r\n\r\n   \n    f\n  g\n\n\n\nh   i\t j\n",
    "Markdown": (
        "## Results\n\n- **first**: `42` of 50 (84 %)\n- *second*: see [the notes](https://example.com/notes?id=7)\n\n"
        "```sh\nmake test && echo done\n```\n\n| key | value |\n| --- | --- |\n| a_b | 1.5 |\n"
    ),
    "a hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 550e8400-e29b-41d4-a716-446655440000",
    "base64": "aGVsbG8gd29ybGQsIHRoaXMgaXMgYSB0ZXN0IG9mIGJhc2U2NCBlbmNvZGluZyBxd2VydHl1aW9wIDEyMzQ1Njc4OTA=",
}


@pytest.mark.parametrize("text", CALIBRATION.values(), ids=list(CALIBRATION))
def test_an_estimate_is_not_below_the_real_count_and_at_most_1_4_times_it(text: str) -> None:
    share = estimate(text) / count(text)
    assert 1.0 <= share <= 1.4, f"{estimate(text)} for {count(text)}: {share:.2f}"


def test_all_calibration_texts_together_are_estimated_within_a_third(figure: Figure) -> None:
    whole = "\n".join(CALIBRATION.values())
    figure(f"{len(whole)} characters, {count(whole)} tokens, estimated at {estimate(whole) / count(whole):.2f} times")
    assert 1.0 <= estimate(whole) / count(whole) <= 1.34


@pytest.mark.parametrize(
    "text,tokens",
    [
        ("", 0),
        ("word", 2),
        ("=" * 60, 1),  # a line is one token
        ("東京", 2),
        ("👍👍", 5),
        ("привет", 3),  # an alphabet without a weight of its own: two characters a token
        ("    ", 2),
        ("\n\n", 2),
    ],
)
def test_each_kind_of_piece_has_its_weight(text: str, tokens: int) -> None:
    assert estimate(text) == tokens


@given(st.text(min_size=1, max_size=300), st.integers(1, 50))
def test_a_text_that_grows_is_measured_like_the_whole(text: str, size: int) -> None:
    meter = Meter()
    for start in range(0, len(text), size):
        meter.add(text[start : start + size])
    assert meter.tokens == estimate(text)  # up to here nothing was estimated apart
    assert meter.tokens <= meter.at_most
    assert not passes(meter.tokens, meter)
    assert passes(meter.tokens - 1, meter)
    assert passes(2 * meter.tokens - 1, meter, meter)


def test_pieces_of_a_long_text_are_measured_about_like_the_whole() -> None:
    text, meter = CALIBRATION["English"] * 20, Meter()
    for start in range(0, len(text), 7):
        meter.add(text[start : start + 7])
    assert 1.0 <= meter.tokens / estimate(text) < 1.05


@pytest.mark.timeout(20)
def test_no_text_makes_the_estimate_slow() -> None:
    for text in ("Aa" * 100_000, "a1" * 100_000, "a-" * 100_000, " \n" * 100_000, "日" * 100_000):
        assert estimate(text) > 0  # a pattern that went back would not come to an end here
