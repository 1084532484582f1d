"""The charts of the reports: well-formed, complete, true to scale."""

import xml.etree.ElementTree as ET

import pytest

from tests.charts import LEFT, bars, strips

SVG = "{http://www.w3.org/2000/svg}"


def _elements(document: str, tag: str) -> list[ET.Element]:
    return list(ET.fromstring(document).iter(f"{SVG}{tag}"))  # noqa: S314 - our own document


def _texts(document: str) -> list[str]:
    return [element.text or "" for element in _elements(document, "text")]


def _widths(document: str) -> list[float]:
    """Of the bars: every rectangle but the paper."""
    return [float(element.attrib["width"]) for element in _elements(document, "rect")[1:]]


def test_bars_are_as_long_as_their_values():
    one, two = _widths(bars("t", [("g", [("a", 1.0), ("b", 2.0)])], "s"))
    assert two == pytest.approx(2 * one)


def test_a_decade_is_a_constant_length_on_a_logarithmic_axis():
    group = [("a", 1.0), ("b", 10.0), ("c", 100.0)]
    one, ten, hundred = _widths(bars("t", [("g", group)], "s", log=True))
    assert hundred - ten == pytest.approx(ten - one, abs=1.1)  # a bar of nothing is a pixel wide


def test_a_missing_value_has_no_bar_and_says_so():
    document = bars("t", [("g", [("a", None), ("b", 0.0)])], "s", log=True)
    assert "none" in _texts(document)
    assert len(_widths(document)) == 1


def test_names_are_escaped_and_every_figure_is_written():
    document = bars("a < b & c", [("<g>", [('"x"', 12345.6)])], "s")
    assert {"a < b & c", "<g>", '"x"', "12,346"} <= set(_texts(document))


def test_strips_show_every_sample_the_median_and_the_worst():
    document = strips("t", [("kill -9", [3.0, 1.0, 2.0, 10.0]), ("nothing", [])], "s")
    circles = _elements(document, "circle")
    places = sorted(float(circle.attrib["cx"]) - LEFT for circle in circles)
    assert places[-1] == pytest.approx(10 * places[0], rel=0.01)
    assert {"2.5 / 10", "none", "kill -9 (4)"} <= set(_texts(document))


def test_no_rows_make_an_empty_chart():
    assert "t" in _texts(bars("t", [], "s", log=True))
    assert "t" in _texts(strips("t", [], "s"))
