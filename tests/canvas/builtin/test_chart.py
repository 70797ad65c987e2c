"""The chart's document: points are counted on, series are bounded, everything can be taken out again."""

from __future__ import annotations

from typing import Any

import pytest

from ahpkit.canvas import CanvasError
from ahpkit.canvas.builtin.chart import CHART, MAX_POINTS, MAX_SERIES
from ahpkit.canvas.registry import check_input


def do(document: Any, action: str, **given: Any) -> tuple[Any, Any]:
    check_input(CHART.actions[action].schema, given)
    return CHART.actions[action].change(document, given)


def test_a_chart_begins_with_its_input() -> None:
    chart = CHART.begin({"title": "Load", "kind": "bar", "series": [{"name": "a", "points": [3, 4]}, {"name": "b"}]})
    assert chart["kind"] == "bar"
    assert chart["series"] == [{"name": "a", "points": [[0, 3], [1, 4]]}, {"name": "b", "points": []}]
    assert CHART.describe(chart) == {"title": "Load", "status": "2 points in 2 series"}
    assert CHART.begin({}) == {"title": "Chart", "kind": "line", "series": []}


def test_numbers_are_counted_on_from_the_last_point() -> None:
    chart, result = do(CHART.begin({}), "addPoints", series="a", points=[[10, 1], 2, 3])
    assert chart["series"][0]["points"] == [[10, 1], [11, 2], [12, 3]]
    assert result == {"series": "a", "points": 3}
    chart, _ = do(chart, "addPoints", series="a", points=[4])
    assert chart["series"][0]["points"][-1] == [13, 4]


def test_the_document_before_is_not_changed() -> None:
    before = CHART.begin({"series": [{"name": "a", "points": [1]}]})
    after, _ = do(before, "addPoints", series="a", points=[2])
    assert len(before["series"][0]["points"]) == 1
    assert len(after["series"][0]["points"]) == 2


def test_the_oldest_points_go_when_there_are_too_many() -> None:
    chart, _ = do(CHART.begin({}), "addPoints", series="a", points=list(range(MAX_POINTS)))
    chart, _ = do(chart, "addPoints", series="a", points=[-1])
    assert len(chart["series"][0]["points"]) == MAX_POINTS
    assert chart["series"][0]["points"][0] == [1, 1]
    chart, result = do(chart, "addPoints", series="b", points=[1, 2])
    assert result == {"series": "b", "points": 0}


def test_there_are_only_so_many_series() -> None:
    chart = CHART.begin({"series": [{"name": str(number)} for number in range(MAX_SERIES)]})
    chart, _ = do(chart, "addPoints", series="0", points=[1])
    with pytest.raises(CanvasError) as raised:
        do(chart, "addPoints", series="another", points=[1])
    assert raised.value.code == "canvas_limit"


@pytest.mark.parametrize(
    "given", [{}, {"series": "a"}, {"series": "", "points": []}, {"series": "a", "points": [[1]]}, {"points": ["x"]}]
)
def test_points_that_are_none_are_refused(given: Any) -> None:
    with pytest.raises(CanvasError, match="input"):
        do(CHART.begin({}), "addPoints", **given)


def test_everything_can_be_exported() -> None:
    chart = CHART.begin({"series": [{"name": '=cmd|"x"', "points": [1.5]}, {"name": "b", "points": [2]}]})
    same, exported = do(chart, "export")
    assert same is chart
    assert exported is chart
    _, text = do(chart, "export", format="csv")
    assert text == 'series,x,y\n"\'=cmd|""x""",0,1.5\nb,0,2\n'


def test_the_title_can_change() -> None:
    chart, result = do(CHART.begin({}), "setTitle", title="New")
    assert (CHART.describe(chart)["title"], result) == ("New", None)
