"""Tool calls in the fragments that servers send, and what is put together of them."""

import pytest

from tests.wire.chat_chunks import Json, call, called


def test_a_call_is_put_together_from_its_fragments() -> None:
    deltas = [[call("f", "", index=0, id="c1")], [call(None, '{"x"', index=0)], [call(None, ": 1}", index=0)]]
    assert called(*deltas) == [("f", '{"x": 1}')]


def test_a_closing_fragment_of_nulls_changes_nothing() -> None:
    nulls = {"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": ""}}
    assert called([call("f", "{}", index=0, id="c1")], [nulls]) == [("f", "{}")]
    assert called([{**nulls, "index": 1}], [nulls]) == []


def test_a_repeated_id_and_name_are_set_once() -> None:
    pieces = [[call("f", piece, index=0, id="c1")] for piece in ("{", '"x":', "1}", "")]
    assert called(*pieces) == [("f", '{"x":1}')]


def test_an_id_that_changes_in_the_middle_is_the_same_call() -> None:
    assert called([call("f", "{", index=0, id="a")], [call("f", "}", index=0, id="b")]) == [("f", "{}")]
    assert called([call("f", "{", index=0, id="a")], [call(None, "}", index=0, id="b")]) == [("f", "{}")]


def test_fragments_are_told_apart_by_index() -> None:
    deltas = [
        [call("f", "{", index=0, id="a"), call("g", "{", index=1, id="b")],
        [call(None, "}", index=1), call(None, "}", index=0)],
    ]
    assert called(*deltas) == [("f", "{}"), ("g", "{}")]


def test_without_an_index_the_id_tells_fragments_apart() -> None:
    deltas = [[call("f", "{", id="a")], [call("g", "{", id="b")], [call(None, "}", id="a"), call(None, "}", id="b")]]
    assert called(*deltas) == [("f", "{}"), ("g", "{}")]


def test_without_index_and_id_a_fragment_belongs_to_the_last_call() -> None:
    assert called([call("f", "{")], [call(None, "}")], [call("g", "{}")]) == [("f", "{}"), ("g", "{}")]


@pytest.mark.parametrize("more", [{}, {"id": ""}, {"id": "null"}, {"index": 0}, {"index": 0, "id": ""}])
def test_whole_calls_in_one_delta_are_calls_of_their_own(more: Json) -> None:
    assert called([call("f", '{"x":1}', **more), call("f", '{"x":2}', **more)]) == [("f", '{"x":1}'), ("f", '{"x":2}')]
    assert called([call("f", "", **more), call("f", "", **more)]) == [("f", ""), ("f", "")]


@pytest.mark.parametrize("ids", [("a", "b"), ("call_0", "call_0"), ("", "")])
def test_whole_calls_at_the_same_index_are_calls_of_their_own(ids: tuple[str, str]) -> None:
    deltas = [[call("f", f'{{"x":{number}}}', index=0, id=id_)] for number, id_ in enumerate(ids)]
    assert called(*deltas) == [("f", '{"x":0}'), ("f", '{"x":1}')]


def test_an_id_used_twice_at_two_indexes_is_two_calls() -> None:
    deltas = [[call("f", '{"x":1}', index=0, id="call_0")], [call("f", '{"x":2}', index=1, id="call_0")]]
    assert called(*deltas) == [("f", '{"x":1}'), ("f", '{"x":2}')]


def test_one_call_at_several_indexes_is_put_together_by_its_id() -> None:
    deltas = [
        [call("f", "{", index=0, id="a")],
        [call(None, '"x":1', index=1, id="a")],
        [call(None, "}", index=2, id="a")],
    ]
    assert called(*deltas) == [("f", '{"x":1}')]


def test_a_whole_call_that_is_repeated_counts_once() -> None:
    deltas = [[call("f", "{", index=0, id="a")], [call(None, "}", index=0)], [call("f", "{}", index=0, id="a")]]
    assert called(*deltas) == [("f", "{}")]


def test_braces_inside_arguments_begin_no_call() -> None:
    pieces = ['{"a": [{"b": {}', "}", "{", '"c": 1}', "{", "}", "]}"]
    deltas = [[call("f", "", index=0, id="c1")], *([call(None, piece, index=0)] for piece in pieces)]
    assert called(*deltas) == [("f", "".join(pieces))]


def test_arguments_may_be_an_object_or_missing() -> None:
    assert called([call("f", {"x": "ü"}, index=0)]) == [("f", '{"x": "ü"}')]
    assert called([{"index": 0, "function": {"name": "f"}}]) == [("f", "")]


def test_the_flat_form_of_workers_ai_is_understood() -> None:
    assert called([{"name": "f", "arguments": {"x": 1}}]) == [("f", '{"x": 1}')]


def test_calls_keep_the_order_in_which_they_appeared() -> None:
    assert called([call("b", "{}", index=5)], [call("a", "{}", index=2)]) == [("b", "{}"), ("a", "{}")]
