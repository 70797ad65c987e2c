from __future__ import annotations

from ahpkit.client.core import given


def test_fields_without_a_value_are_left_out_and_empty_values_are_values() -> None:
    assert given(a=None, b=0, c="", d=False, e=[]) == {"b": 0, "c": "", "d": False, "e": []}
