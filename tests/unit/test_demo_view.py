"""The live view: fits the terminal, shows what matters, and no text can break it."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from sidecar.cli.demo.show import framed, plain
from sidecar.cli.demo.view import Page, rendered
from sidecar.cli.demo.words import Line, Run, Schedule, Seat, Snapshot

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
DUE = NOW - timedelta(seconds=1)
EPOCH = 1_794_798_437_296
SNAPSHOT = Snapshot(
    NOW,
    pods={"pod-1": "dead", "pod-2": "leader", "pod-3": "standby"},
    seats={
        "billing": Seat("billing", "pod-2", EPOCH, NOW - timedelta(seconds=30)),
        "default": Seat("default", "", EPOCH + 1, NOW),
    },
    schedules=(
        Schedule("flaky", "billing", "every 10s", NOW + timedelta(seconds=4), NOW),
        Schedule("order-flow", "default", "every 5m", NOW + timedelta(seconds=150), NOW),
        Schedule("report", "default", "every 2s", NOW - timedelta(seconds=1), NOW),
    ),
    runs=(
        Run(3, "schedule", "flaky", DUE, "waiting", attempt=2, pod="pod-2", error="busy"),
        Run(
            2, "trigger", "order-flow", DUE, "running", attempt=2, pod="pod-3", step="charge",
            progress=0.4,
        ),
        Run(
            1, "schedule", "report", DUE, "ended", attempt=1, outcome="succeeded", pod="pod-2",
            started_at=DUE + timedelta(milliseconds=12),
        ),
    ),
    count=17,
)  # fmt: skip
LINES = [Line(NOW, "plain", f"event {n}") for n in range(50)]
PAGE = Page("the leader was killed", 17.2, 45, SNAPSHOT, LINES)


def rows_of(page: Page = PAGE, columns: int = 80, rows: int = 24) -> list[str]:
    return rendered(page, columns, rows, colour=False)


def test_everything_is_on_an_80_by_24_screen() -> None:
    rows = rows_of()
    text = "\n".join(rows)
    assert len(rows) == 24
    assert rows[0].endswith("17 s of 45 s ")
    assert "the leader was killed" in rows[1]
    assert re.search(r"pod-1 +dead", text)
    assert re.search(rf"pod-2 +leader +billing +default +nobody \(last epoch {EPOCH + 1}\)", text)
    assert re.search(rf"billing +pod-2 +{EPOCH} +30 s", text)
    assert re.search(r"flaky +billing +every 10s +in 4s +attempt 2 failed: busy", text)
    assert re.search(r"order-flow .* in 2m +\[##\.\.\.\] charge on pod-3, attempt 2", text)
    assert re.search(r"report .* due +ok on pod-2, 12 ms late", text)
    assert re.search(r"coordinator +default +always +17, waits for a leader", text)
    assert rows[-1].endswith("event 49")


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (200, 60), (40, 10), (20, 3), (1, 1)])
def test_never_more_than_the_terminal_has(columns: int, rows: int) -> None:
    drawn = rows_of(columns=columns, rows=rows)
    assert len(drawn) <= rows
    assert max(len(row) for row in drawn) <= columns


def test_colour_changes_no_letter() -> None:
    coloured = rendered(PAGE, 80, 24, colour=True)
    assert any("\x1b[" in row for row in coloured)
    assert [re.sub(r"\x1b\[[0-9;]*m", "", row) for row in coloured] == rows_of()


def test_text_from_elsewhere_cannot_steer_the_terminal() -> None:
    evil = replace(SNAPSHOT.runs[0], error="\x1b[2J\r\nboo")
    page = replace(PAGE, snapshot=replace(SNAPSHOT, runs=(evil,)))
    assert not re.search(r"[\x00-\x1f]", "".join(rows_of(page)))


def test_the_columns_stay_apart_when_a_pod_leads_everything() -> None:
    seats = {group: Seat(group, "pod-1", EPOCH, NOW) for group in ("billing", "default")}
    rows = rows_of(replace(PAGE, snapshot=replace(SNAPSHOT, seats=seats)))
    assert re.search(r"billing, default +billing +pod-1", "\n".join(rows))


def test_a_frame_replaces_the_one_before() -> None:
    assert framed(["a", "b"]) == "\x1b[Ha\x1b[K\r\nb\x1b[K\x1b[J"


def test_a_plain_line_has_its_time() -> None:
    line = Line(NOW.replace(microsecond=12_345), "plain", "text")
    assert plain(line) == "03:04:05.012  text"
