import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpkit.customizations.jsonc import JsonError, parse

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(values, st.sampled_from([None, 2]))
def test_whatever_json_writes_is_read_back(value: object, indent: int | None) -> None:
    parsed = parse(json.dumps(value, indent=indent, ensure_ascii=False))
    assert parsed.root.value == value
    assert not parsed.lenient
    assert not parsed.duplicates


def test_comments_and_trailing_commas_are_taken_and_said() -> None:
    parsed = parse('{ // one\n "a": [1, 2,], /* two */ "b": {},\n}')
    assert parsed.root.value == {"a": [1, 2], "b": {}}
    assert parsed.lenient


def test_keys_given_twice_are_said_and_the_last_counts() -> None:
    parsed = parse('{"a": 1, "a": 2}')
    assert (parsed.root.value, parsed.duplicates) == ({"a": 2}, ["a"])


def test_a_member_spans_its_key_and_value() -> None:
    text = '{\n  "é😀": 1,\n  "server": {\n    "command": "x"\n  }\n}'
    parsed = parse(text)
    assert parsed.range(parsed.root.members["server"]) == {
        "start": {"line": 2, "character": 2},
        "end": {"line": 4, "character": 3},
    }
    assert parsed.range(parsed.root.members["é😀"])["end"] == {"line": 1, "character": 10}
    assert parsed.line(parsed.root.members["server"]) == 3


@given(st.dictionaries(st.text(max_size=8), values, min_size=1, max_size=4))
def test_a_range_cuts_out_exactly_the_declaration(value: dict[str, object]) -> None:
    text = json.dumps(value, indent=1, ensure_ascii=False)
    parsed = parse(text)
    for key, node in parsed.root.members.items():
        assert json.loads("{" + text[node.start : node.end] + "}") == {key: value[key]}


@pytest.mark.parametrize(
    "text", ["", "{", "[1", '{"a" 1}', '{"a":}', "nul", "[1,,2]", '{"a":1}}', '"abc', "/* x", "{,}", "[,]", "[1 2]"]
)
def test_what_is_no_json_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(JsonError) as caught:
        parse(f"\n\n{text}")
    assert caught.value.line == 3


@pytest.mark.parametrize("text", ["[" * 50_000, '{"a":' * 50_000, "1" * 10_000, '"' + "\\" * 500_001, "/*" * 200_000])
def test_text_made_to_hurt_is_refused_quickly(text: str) -> None:
    with pytest.raises(JsonError):
        parse(text)


def test_half_a_surrogate_pair_is_replaced() -> None:
    assert parse('"\\ud800x"').root.value == "\ufffdx"
