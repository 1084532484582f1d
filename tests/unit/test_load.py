"""The declared load of a group, against what one leader sustains."""

from pathlib import Path

import pytest

from sidecar.cli.check import run as check
from sidecar.model.definitions import Schedule
from sidecar.model.load import (
    SUSTAINABLE_TICKS_PER_SECOND,
    overload_warnings,
    ticks_per_second,
)

MANY = int(SUSTAINABLE_TICKS_PER_SECOND) + 1


@pytest.mark.parametrize(
    ("schedule", "rate"),
    [
        (Schedule(name="s", every_seconds=0.5), 2.0),
        (Schedule(name="s", every_seconds=0.5, enabled=False), 0.0),
        (Schedule(name="s", cron="* * * * * *"), 1.0),
        (Schedule(name="s", cron="*/2 * 9 * * *"), 0.5),  # in its busiest hour
        (Schedule(name="s", cron="* * * * *"), 1 / 60),
        (Schedule(name="s", cron="@daily"), 1 / 3600),
        (Schedule(name="s", cron="no cron"), 0.0),
    ],
)
def test_ticks_per_second(schedule: Schedule, rate: float) -> None:
    assert ticks_per_second(schedule) == pytest.approx(rate)


def test_each_group_counts_by_itself() -> None:
    few = [Schedule(name=f"a{n}", every_seconds=1.0, group="a") for n in range(MANY - 1)]
    assert overload_warnings(few) == []
    many = [Schedule(name=f"b{n}", every_seconds=1.0, group="b") for n in range(MANY)]
    (warning,) = overload_warnings([*few, *many])
    assert warning.startswith(f"group b: its schedules declare {MANY} ticks per second")


def test_check_warns_of_more_than_a_leader_sustains(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f"  - {{name: s{n}, every: 1s}}" for n in range(MANY)]
    file = tmp_path / "baton.yaml"
    file.write_text("cluster: orders\nschedules:\n" + "\n".join(lines))
    assert check(str(file)) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert f"warning: group default: its schedules declare {MANY} ticks per second" in told.err
