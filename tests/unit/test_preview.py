"""`baton preview`: what it prints, and how it refuses."""

import pytest

from sidecar.cli import preview


def test_fire_times_carry_the_offset_of_the_zone(capsys):
    code = preview.run("30 2 * * *", "America/New_York", "2026-03-07T00:00:00Z", 3)
    assert code == 0
    assert capsys.readouterr() == (
        "2026-03-07T02:30:00-05:00\n2026-03-08T03:00:00-04:00\n2026-03-09T02:30:00-04:00\n",
        "",
    )


def test_from_is_exclusive_and_may_have_any_offset(capsys):
    assert preview.run("@hourly", "UTC", "2026-01-01T01:00:00.000+01:00", 1) == 0
    assert capsys.readouterr().out == "2026-01-01T01:00:00+00:00\n"


def test_without_from_the_first_time_lies_ahead(capsys):
    assert preview.run("* * * * * *", "UTC", None, 5) == 0
    assert len(capsys.readouterr().out.splitlines()) == 5


def test_a_hashed_field_is_pointed_out_beside_the_times(capsys):
    assert preview.run("H 2 * * THU", "UTC", "2026-01-01T00:00:00Z", 1) == 0
    out, err = capsys.readouterr()
    assert out.startswith("2026-01-0")
    assert "H depends on" in err
    preview.run("0 2 * MAR THU", "UTC", "2026-01-01T00:00:00Z", 1)
    assert capsys.readouterr().err == ""


def test_time_ends(capsys):
    assert preview.run("0 0 1 1 *", "UTC", "2198-06-01T00:00:00Z", 5) == 0
    out, err = capsys.readouterr()
    assert out == "2199-01-01T00:00:00+00:00\n"
    assert "2200" in err


def test_an_offset_with_seconds_is_printed_in_utc(capsys):
    assert preview.run("0 0 * * *", "Africa/Monrovia", "1960-01-01T12:00:00Z", 1) == 0
    assert capsys.readouterr().out == "1960-01-02T00:44:30+00:00\n"


@pytest.mark.parametrize(
    ("expression", "timezone", "start", "count", "named"),
    [
        ("61 * * * *", "UTC", None, 1, "minute"),
        ("0 0 30 2 *", "UTC", None, 1, "never fires"),
        ("0 0\n* * x", "UTC", None, 1, "day of week"),
        ("0 0 * * *", "Europe/Belin", None, 1, "Europe/Berlin"),
        ("0 0 * * *", "UTC", "2026-01-01", 1, "--from"),
        ("0 0 * * *", "UTC", "2026-01-01T00:00:00", 1, "--from"),
        ("0 0 * * *", "UTC", "2026-13-01T00:00:00Z", 1, "--from"),
        ("0 0 * * *", "UTC", "٢٠٢٦-01-01T00:00:00Z", 1, "--from"),
        ("0 0 * * *", "UTC", None, 0, "-n"),
        ("0 0 * * *", "UTC", None, 1001, "-n"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(
    capsys, expression, timezone, start, count, named
):
    """G11."""
    assert preview.run(expression, timezone, start, count) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert named in err
    assert err.count("\n") == 1
