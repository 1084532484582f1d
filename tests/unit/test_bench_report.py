"""The report of the benchmarks: made of all that was measured, whatever failed."""

import math

import pytest

from tests.bench import growth, report, results, takeover, ticks
from tests.bench.candidates import FAULTS
from tests.bench.report import Bench, Section
from tests.bench.results import Measured, percentile, spread


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "STORE", tmp_path / "store")
    monkeypatch.setattr(report, "REPORT", tmp_path / "benchmarks.md")
    monkeypatch.setattr(report, "CHARTS", tmp_path / "benchmarks")


def _measured(name: str, **parts: object) -> Measured:
    return Measured(name, "today", "a machine", "18", 0.5, parts=parts)


def _bench(section) -> Bench:
    return Bench("Title", "intro", 1.0, {}, section)


def test_a_bench_run_alone_keeps_the_others():
    _measured("one", figure=1).save()
    _measured("two", figure=2).save()
    _measured("one", figure=3).save()
    kept = {name: results.load(name) for name in ("one", "two", "three")}
    assert [found and found.parts for found in kept.values()] == [
        {"figure": 3},
        {"figure": 2},
        None,
    ]


def test_the_report_has_text_charts_and_circumstances_of_every_bench():
    shown = _bench(lambda parts: Section(f"figure {parts['figure']}", {"chart": "<svg/>"}))
    report.write({"one": shown, "two": shown}, {"one": _measured("one", figure=42)})
    text = report.REPORT.read_text()
    assert "figure 42" in text
    assert "![chart](benchmarks/chart.svg)" in text
    assert "a machine; Postgres 18; load 0.5" in text
    assert (report.CHARTS / "chart.svg").read_text() == "<svg/>"


def test_a_section_that_cannot_be_shown_says_so_and_leaves_the_others():
    old, fine = _bench(lambda parts: Section(parts["new"])), _bench(lambda _: Section("fine"))
    report.write({"a": old, "b": fine}, {"a": _measured("a"), "b": _measured("b")})
    text = report.REPORT.read_text()
    assert "not shown (failed: KeyError" in text
    assert "fine" in text


@pytest.mark.parametrize("bench", [takeover, ticks, growth])
def test_parts_that_failed_are_rows_that_say_why(bench):
    shown = bench.section({part: {"failed": "failed: no power"} for part in bench.PARTS})
    assert "failed: no power" in shown.text


def test_never_and_what_did_not_arrive_are_no_figures():
    faults = {fault: [0.5] for fault in FAULTS}
    stuck = {**faults, "SIGSTOP": [None]}
    text = takeover.section({"systems": {takeover.BATON: faults, "peer": stuck}}).text
    assert "| peer | 0.50 (worst 0.50, 1×) [1.0×] |" in text
    assert "| never (1 of 1) |" in text


def test_a_peer_that_is_better_is_named():
    slow, quick = ({fault: [at] for fault in FAULTS} for at in (4.0, 1.0))
    text = takeover.section({"systems": {takeover.BATON: slow, "peer": quick}}).text
    assert "peer after kill -9 (1.00 s against 4.00 s)" in text


def test_a_peer_that_is_mostly_better_is_named_with_what_it_costs():
    """A round without an end is no reason to hide the others, nor the best of them the typical."""
    slow = {fault: [4.0] for fault in FAULTS}
    mostly = {fault: [0.2, None, 0.8, 1.0, 0.9] for fault in FAULTS}
    text = takeover.section({"systems": {takeover.BATON: slow, "peer": mostly}}).text
    assert "| never (1 of 5; else 0.85) |" in text
    assert "peer after kill -9 (0.90 s against 4.00 s, never in 1 of 5)" in text


def test_a_peer_whose_ticks_are_mostly_sooner_is_named():
    def part(p50: float, p99: float) -> dict[str, object]:
        figures = {"expected": 9, "arrived": 9, "p50_ms": p50, "p99_ms": p99, "worst_ms": p99}
        return {kind: {**figures, "burst_seconds": [1.0]} for kind in ticks.SHOWN}

    text = ticks.section({ticks.BATON: part(8, 9), "peer": part(3, 27)}).text
    assert "peer: 1 due (3 / 27 against 8 / 9 ms), 100 due" in text


def test_lateness_is_counted_from_the_last_due_time_where_none_is_given():
    begin = 1_200_000.0
    assert begin % 60 == 0
    before = (begin - 9.5, "hundred", begin - 10)
    arrived = [before, (begin + 0.25, "hundred", None), (begin + 10.5, "hundred", begin + 10)]
    figures = ticks._figures(arrived, ticks.FEW, begin)
    assert figures["hundred"]["burst_seconds"] == [0.25, 0.5]
    assert figures["hundred"]["arrived"] == 2
    assert figures["one"] == {"expected": 14, "arrived": 0}


def test_a_reason_is_one_short_line_without_a_path():
    text = results.reason(AssertionError("in /srv/somewhere/else:\n  no leader" + "!" * 500))
    assert text.startswith("failed: AssertionError: in …: no leader!!!")
    assert len(text) == 200


def test_percentiles_are_values_that_were_measured():
    values = [float(n) for n in range(1, 101)]
    assert [percentile(values, share) for share in (0.5, 0.99, 1.0)] == [50.0, 99.0, 100.0]
    assert percentile([7.0], 0.99) == 7.0
    assert spread([1.0, 3.0, 2.0]) == "2.00 (worst 3.00, 3×)"
    assert math.isclose(percentile([1.0, 2.0], 0.5), 1.0)
