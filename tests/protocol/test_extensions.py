"""Names of extensions, and what an announcement says."""

from __future__ import annotations

from typing import Any

import pytest

from ahpkit.dialects.v0_4.registry import COMMANDS, NOTIFICATIONS
from ahpkit.protocol.errors import LocalProtocolError
from ahpkit.protocol.extensions import announced, announces, check_feature, check_method, check_name
from support import requirement

NO_NAMES = ["analytics", "", "_example.com/analytics", "traceparent", "/x", "example.com/", "a//b", "a/b c", "zed.dev"]


@requirement("extensibility:naming:namespaced")
@requirement("extensibility:methods:custom-request-name")
@pytest.mark.parametrize("name", NO_NAMES)
def test_a_name_without_a_namespace_is_refused(name: str) -> None:
    with pytest.raises(LocalProtocolError, match="namespace"):
        check_name(name)


@pytest.mark.parametrize("name", ["example.com/analytics", "myproject/custom", "a/b/c"])
def test_a_namespace_a_slash_and_a_feature_is_a_name(name: str) -> None:
    check_name(name)
    check_method(f"_{name}")


@pytest.mark.parametrize(
    "method", ["summary", "_summary", "example.com/summary", "_/summary", "_example.com/", "__a/b"]
)
def test_a_method_without_underscore_or_namespace_is_refused(method: str) -> None:
    with pytest.raises(LocalProtocolError, match=r"_example\.com/feature"):
        check_method(method)


@pytest.mark.parametrize("feature", ["", "/", "_example.com/analytics/summary", "a b", "summary/"])
def test_what_stands_behind_a_name_is_a_word_or_several(feature: str) -> None:
    with pytest.raises(LocalProtocolError, match="summary"):
        check_feature(feature)


@requirement("extensibility:methods:underscore-is-for-extensions")
def test_no_method_of_the_protocol_begins_with_an_underscore() -> None:
    assert [name for name in (*COMMANDS, *NOTIFICATIONS) if name.startswith("_")] == []


@requirement("extensibility:naming:method-prefix")
@pytest.mark.parametrize("name", ["example.com", "example.com/analytics", "example.com/analytics/summary"])
def test_a_method_belongs_to_the_extension_in_its_name(name: str) -> None:
    assert announces({"other": 1, name: {}}, "_example.com/analytics/summary")


@pytest.mark.parametrize("name", ["example.co", "example.com/analytic", "analytics", "_example.com", ""])
def test_other_names_do_not_count(name: str) -> None:
    assert not announces({name: True}, "_example.com/analytics/summary")


@pytest.mark.parametrize("value", [False, None])
def test_an_announcement_can_say_no(value: Any) -> None:
    assert not announces({"example.com/analytics": value}, "_example.com/analytics/summary")
    assert announced({"_meta": {"example.com/analytics": value}}) == {}


@requirement("extensibility:capabilities:any-announcement-value")
def test_what_is_announced_under_a_namespace_is_taken_as_it_is_and_nothing_else() -> None:
    said = {"zed.dev": {"workspace": True}, "a/b": 0, "c.d/e": [1, None], "terminal_output": True, "traceparent": "x"}
    assert announced({"_meta": said}) == {"zed.dev": {"workspace": True}, "a/b": 0, "c.d/e": [1, None]}


@requirement("extensibility:meta:any-json-values")
@pytest.mark.parametrize("capabilities", [None, "x", [], {}, {"_meta": None}, {"_meta": "x"}, {"_meta": [1]}])
def test_capabilities_of_any_shape_can_be_read(capabilities: Any) -> None:
    assert announced(capabilities) == {}
