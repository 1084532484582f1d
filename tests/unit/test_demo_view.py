"""The live view: fits the terminal, shows what matters, and no text can break it."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from devtools.demo.display import format_event, make_frame
from devtools.demo.model import Event, GroupLeader, Run, Schedule, Snapshot
from devtools.demo.view import Page, render

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
DUE = NOW - timedelta(seconds=1)
EPOCH = 1_794_798_437_296
SNAPSHOT = Snapshot(
    NOW,
    pods={"pod-1": "dead", "pod-2": "leader", "pod-3": "standby"},
    leaders={
        "billing": GroupLeader("billing", "pod-2", EPOCH, NOW - timedelta(seconds=30)),
        "default": GroupLeader("default", "", EPOCH + 1, NOW),
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
EVENTS = [Event(NOW, "plain", f"event {n}") for n in range(50)]
PAGE = Page("the leader was killed", 17.2, 45, SNAPSHOT, EVENTS)


def rows_of(page: Page = PAGE, columns: int = 80, rows: int = 24) -> list[str]:
    return render(page, columns, rows, colour=False)


def test_everything_is_on_an_80_by_24_screen() -> None:
    rows = rows_of()
    text = "\n".join(rows)
    assert len(rows) == 24
    assert rows[0].endswith("17 s of 45 s ")
    assert "the leader was killed" in rows[1]
    assert re.search(r"pod-1 +dead", text)
    assert re.search(rf"pod-2 +leader +billing +default +none \(last epoch {EPOCH + 1}\)", text)
    assert re.search(rf"billing +pod-2 +{EPOCH} +30 s", text)
    assert re.search(r"flaky +billing +every 10s +in 4s +attempt 2 failed: busy", text)
    assert re.search(r"order-flow .* in 2m +\[##\.\.\.\] charge on pod-3, attempt 2", text)
    assert re.search(r"report .* due +ok on pod-2, 12 ms late", text)
    assert re.search(r"coordinator +default +always +count 17, waiting for a leader", text)
    assert rows[-1].endswith("event 49")


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (200, 60), (40, 10), (20, 3), (1, 1)])
def test_never_more_than_the_terminal_has(columns: int, rows: int) -> None:
    drawn = rows_of(columns=columns, rows=rows)
    assert len(drawn) <= rows
    assert max(len(row) for row in drawn) <= columns


def test_colour_does_not_change_the_text() -> None:
    coloured = render(PAGE, 80, 24, colour=True)
    assert any("\x1b[" in row for row in coloured)
    assert [re.sub(r"\x1b\[[0-9;]*m", "", row) for row in coloured] == rows_of()


def test_text_of_an_app_cannot_control_the_terminal() -> None:
    evil = replace(SNAPSHOT.runs[0], error="\x1b[2J\r\nboo")
    page = replace(PAGE, snapshot=replace(SNAPSHOT, runs=(evil,)))
    assert not re.search(r"[\x00-\x1f]", "".join(rows_of(page)))


def test_the_columns_stay_apart_when_a_pod_leads_everything() -> None:
    leaders = {group: GroupLeader(group, "pod-1", EPOCH, NOW) for group in ("billing", "default")}
    rows = rows_of(replace(PAGE, snapshot=replace(SNAPSHOT, leaders=leaders)))
    assert re.search(r"billing, default +billing +pod-1", "\n".join(rows))


def test_a_frame_replaces_the_previous_one() -> None:
    assert make_frame(["a", "b"]) == "\x1b[Ha\x1b[K\r\nb\x1b[K\x1b[J"


def test_the_line_of_an_event_has_its_time() -> None:
    event = Event(NOW.replace(microsecond=12_345), "plain", "text")
    assert format_event(event) == "03:04:05.012  text"
