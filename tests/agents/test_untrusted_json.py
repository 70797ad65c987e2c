from ahpkit.agents.untrusted_json import integer, number, obj, objects, strings, text


def test_reading_gives_the_value_only_when_it_has_the_expected_type() -> None:
    assert obj({"a": 1}) == {"a": 1}
    assert obj([1]) == {}
    assert objects([{"a": 1}, 2, None]) == [{"a": 1}]
    assert objects("no list") == []
    assert strings(["a", 1, "b"]) == ["a", "b"]
    assert text("") is None
    assert text(5) is None
    assert number(True) is None
    assert number(1.5) == 1.5


def test_a_whole_number_may_be_written_with_a_fraction_of_zero() -> None:
    assert integer(3.0) == 3
    assert integer(3.5) is None
    assert integer(float("inf")) is None
    assert integer("3") is None
