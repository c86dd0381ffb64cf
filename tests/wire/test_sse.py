import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_agent.wire.sse import Decoder, Frame, encode

LINE_ENDS = ("\n", "\r", "\r\n")


def decode(*chunks: bytes) -> list[Frame]:
    decoder = Decoder()
    return [frame for chunk in chunks for frame in decoder.feed(chunk)] + decoder.end()


def test_a_frame_holds_data_event_and_id() -> None:
    assert decode(b"event: delta\nid: 7\ndata: hello\n\n") == [Frame("hello", "delta", "7")]


@pytest.mark.parametrize("end", LINE_ENDS)
def test_lines_may_end_by_cr_lf_or_both(end: str) -> None:
    text = f": hello{end}data: one{end}data: two{end}{end}data:three{end}{end}"
    assert decode(text.encode()) == [Frame("one\ntwo"), Frame("three")]


@pytest.mark.parametrize("end", LINE_ENDS)
def test_a_frame_is_given_out_with_its_last_byte_and_not_later(end: str) -> None:
    assert Decoder().feed(f"data: x{end}{end}".encode()) == [Frame("x")]


def test_a_byte_order_mark_is_taken_off_at_the_start_only() -> None:
    assert decode("\ufeffdata: \ufeff\n\n".encode()) == [Frame("\ufeff")]


def test_one_space_after_the_colon_is_not_data() -> None:
    assert decode(b"data:  x\n\ndata:x\n\n") == [Frame(" x"), Frame("x")]


def test_comments_unknown_fields_and_frames_without_data_say_nothing() -> None:
    assert decode(b": OPENROUTER PROCESSING\n\nfoo: bar\nevent: ping\n\nevent:x\n\n") == []


def test_an_event_without_data_does_not_name_the_next_frame() -> None:
    assert decode(b"event: ping\n\ndata: x\n\n") == [Frame("x")]


def test_a_data_line_without_a_colon_is_an_empty_line() -> None:
    assert decode(b"data\ndata\n\n") == [Frame("\n")]


def test_an_id_stays_until_the_next_one_and_an_empty_one_resets_it() -> None:
    frames = decode(b"id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\nid: x\0\ndata: d\n\n")
    assert [frame.id for frame in frames] == ["1", "1", "", ""]


def test_the_data_may_come_before_the_event() -> None:
    assert decode(b"data: x\nevent: late\n\n") == [Frame("x", "late")]


@pytest.mark.parametrize(
    "value, milliseconds", [("1500", 1500), ("-1", None), ("1.5", None), ("\u0661", None), ("9" * 40, None)]
)
def test_a_reconnection_time_is_taken_from_digits_only(value: str, milliseconds: int | None) -> None:
    decoder = Decoder()
    decoder.feed(f"retry: {value}\n\n".encode())
    assert decoder.retry == milliseconds


def test_a_last_frame_without_its_blank_line_is_given_out_at_the_end() -> None:
    decoder = Decoder()
    assert decoder.feed(b"data: a\n\ndata: [DONE]") == [Frame("a")]
    assert decoder.end() == [Frame("[DONE]")]
    assert decoder.end() == []


def test_broken_utf_8_becomes_replacement_characters() -> None:
    assert decode(b"data: a\xff\xe2\x82b\n\n") == [Frame("a\ufffd\ufffdb")]


@pytest.mark.parametrize("stream", [b"data: " + b"x" * 99, b"data: xxxxxxxx\n" * 20, b"x" * 120])
def test_a_frame_that_grows_beyond_the_bound_is_refused(stream: bytes) -> None:
    decoder = Decoder(max_chars=100)
    pieces = (stream[start : start + 7] for start in range(0, len(stream), 7))
    with pytest.raises(ValueError, match="longer than 100"):
        list(map(decoder.feed, pieces))


def test_the_bound_is_of_one_frame_and_not_of_the_stream() -> None:
    decoder = Decoder(max_chars=100)
    assert sum(len(decoder.feed(b": a comment of some length\ndata: " + b"x" * 40 + b"\n\n")) for _ in range(50)) == 50


STREAM = (
    "\ufeff: hi\r\ndata: grüße \U0001f600\r\n\r\nevent: e\rid: 1\rdata: a\rdata: b\r\rretry: 5\ndata: {}\n\ndata: end"
)


def test_where_a_stream_is_cut_changes_nothing() -> None:
    stream = STREAM.encode()
    whole = decode(stream)
    assert [frame.data for frame in whole] == ["grüße \U0001f600", "a\nb", "{}", "end"]
    for cut in range(len(stream) + 1):
        assert decode(stream[:cut], stream[cut:]) == whole
    assert decode(*(stream[index : index + 1] for index in range(len(stream)))) == whole


fields = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), min_size=1, max_size=20)
datas = st.text(st.characters(exclude_characters="\r", exclude_categories=["Cs"]), max_size=40)


@settings(deadline=None)
@given(st.lists(st.tuples(st.none() | fields, datas, fields), max_size=5), st.lists(st.integers(0, 400), max_size=5))
def test_what_is_encoded_is_decoded(frames: list[tuple[str | None, str, str]], cuts: list[int]) -> None:
    stream = "".join(encode(*frame) for frame in frames).encode()
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    chunks = [stream[a:b] for a, b in itertools.pairwise(edges)]
    assert decode(*chunks) == [Frame(data, event, id_) for event, data, id_ in frames]


@settings(deadline=None)
@given(st.lists(st.binary(max_size=30), max_size=6))
def test_any_bytes_are_decoded_alike_however_they_are_cut(chunks: list[bytes]) -> None:
    assert decode(*chunks) == decode(b"".join(chunks))


def test_a_frame_is_written_as_its_fields_and_a_blank_line() -> None:
    assert encode("delta", "a\r\nb\rc", "3") == "id: 3\nevent: delta\ndata: a\ndata: b\ndata: c\n\n"
    assert encode(None, "") == "data: \n\n"


@pytest.mark.parametrize("value", ["a\nb", "a\rb", "a\0b"])
def test_an_event_or_id_that_would_begin_a_field_of_its_own_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="line end or NUL"):
        encode(value, "")
    with pytest.raises(ValueError, match="line end or NUL"):
        encode(None, "", value)
