"""The catalogue of faults and its report: names are unique, and what is committed tells of all."""

from __future__ import annotations

from collections import Counter

from tests.acceptance.faults import report
from tests.acceptance.faults.catalogue import FAULTS
from tests.acceptance.faults.run import Result


def _results() -> list[Result]:
    calm = [Result(fault.name, fault.about, takeovers=[1.0, 4.0, 2.0]) for fault in FAULTS]
    missed = Result(FAULTS[0].name, "x", takeovers=[1.0, None], violations=["[kept] G7: lost: k"])
    return [missed, Result(FAULTS[1].name, "y", skipped="needs root"), *calm[2:]]


def test_every_fault_has_a_name_of_its_own_and_a_bound() -> None:
    assert max(Counter(fault.name for fault in FAULTS).values()) == 1
    for fault in FAULTS:
        terms = fault.terms
        bound = terms.takeover_seconds or terms.recovery_seconds or terms.steady or terms.red
        assert bound, f"{fault.name} expects nothing of its own"
        assert bool(terms.exempt) == bool(fault.exempt_because), fault.name


def test_the_report_tells_of_every_fault() -> None:
    page = report.markdown(_results())
    for fault in FAULTS:
        assert f"| {fault.name} |" in page
    assert "skipped: needs root" in page
    assert f"Violations: {FAULTS[0].name}." in page
    assert "| never |" in page
    assert "| 2.00 / 4.00 |" in page
    assert "violation: [kept] G7: lost: k" in page
    assert "Not judged: writes acknowledged during the fault" in page


def test_the_plot_has_a_strip_for_every_fault_with_times() -> None:
    plot = report.plot(_results())
    assert plot.startswith("<svg")
    assert f"{FAULTS[0].name} (1)" in plot
    assert FAULTS[1].name not in plot
    assert f"{FAULTS[2].name} (3)" in plot


def test_the_committed_report_tells_of_every_fault() -> None:
    page = report.PAGE.read_text()
    missing = [fault.name for fault in FAULTS if f"| {fault.name} |" not in page]
    assert not missing, "run `make faults`"
