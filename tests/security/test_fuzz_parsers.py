"""Whatever stands in a file, a cron expression, a duration or a row: a value or a clear refusal.

Sensible inputs with a few things made odd (G11). Arbitrary bytes and texts are tried in
tests/unit/test_config.py and test_cron.py. A second each in `make test`, as long as is asked by
`make fuzz`; `BATON_FUZZ_SEED` begins where something was found.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from copy import deepcopy
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from sidecar.adapters.postgres.definitions import from_json, to_json
from sidecar.config import ConfigError, load
from sidecar.model import duration
from sidecar.model.cron import CronError
from sidecar.model.cron import parse as parse_cron
from sidecar.model.definitions import Schedule
from sidecar.model.errors import DamagedRow, InvalidArgument
from sidecar.model.schedule import timing_of

SECONDS = float(os.environ.get("BATON_FUZZ_SECONDS", "8")) / 8
FIRST_SEED = int(os.environ.get("BATON_FUZZ_SEED", "0"))
ONE_SECONDS_MAX = 5.0  # no input may take longer, on a machine that does other things too
LINE = re.compile(r"(?:.*:\d+|environment:0): .+: .+; .+", re.DOTALL)
NOW = datetime(2026, 1, 1, tzinfo=UTC)

SOUND: dict[str, Any] = {
    "cluster": "orders",
    "config_revision": 3,
    "app": {"address": "127.0.0.1:50051", "health_interval": "1s", "max_concurrent": 64},
    "api": {"address": "unix:///run/baton/api.sock", "token_file": ""},
    "http": {"address": "0.0.0.0:9400"},
    "postgres": {"url": "postgresql://u:p@h:5432/d", "schema": "baton", "pool_max": 4},
    "redis": {"url": "redis://h:6379/0", "ttl": "30s", "timeout": "100ms"},
    "election": {"ping": "1s", "lease": "3s", "server_lease": "4s", "poll": "1s", "grace": "3.2s"},
    "groups": ["default", "other"],
    "health": {"readiness": ["app", "singletons"]},
    "log": {"level": "info", "format": "json"},
    "singletons": [{"name": "one", "state": {"version": 1, "initial": {}, "schema": {}}}],
    "schedules": [
        {"name": "a", "cron": "0 2 * * *", "timezone": "Europe/Berlin", "retry": {"attempts": 3}},
        {"name": "b", "every": "30s", "overlap": "skip", "payload": '{"days": 30}'},
        {"name": "c", "at": "2027-01-01T00:00:00Z", "catch_up": "all"},
    ],
}
ODD: tuple[Any, ...] = (
    None, True, -1, 0, 2**63, 1e308, float("nan"), "", " ", "0s", "-1s", "1e9d", "9" * 400, "a\0b",
    "\U0001f600", "../../x", "unix://", "[::1]:1", "h:99999", "redis://[", "postgresql://@:x/?%zz",
    "* * * * *", "0 0 31 2 *", "*/0 * * * *", "1-0 * * * *", "Mars/Base", "9999-12-31T23:59:59Z",
    [], {}, [[]], {"a": {"b": {}}}, ["default"] * 100, "${HOME}", "!!python/object:os.system x",
)  # fmt: skip


def seeds() -> Iterator[Random]:
    """For as long as there is time; an input must not take long by itself."""
    deadline = time.monotonic() + SECONDS
    for seed in count(FIRST_SEED):
        began = time.monotonic()
        if began > deadline and seed > FIRST_SEED + 20:
            return
        yield Random(seed)
        assert time.monotonic() - began < ONE_SECONDS_MAX, f"seed {seed} took too long"


def spoiled(chance: Random, sound: Any) -> Any:
    """A copy with up to three values replaced, keys renamed, added or taken away."""
    copy = deepcopy(sound)
    for _ in range(chance.randint(1, 3)):
        place = copy
        while inner := [each for each in _items(place) if isinstance(place[each], dict | list)]:
            if chance.random() < 0.4:
                break
            place = place[chance.choice(inner)]
        _spoil(chance, place)
    return copy


def _items(place: Any) -> list[Any]:
    return list(place) if isinstance(place, dict) else list(range(len(place)))


def _spoil(chance: Random, place: Any) -> None:
    keys, odd = _items(place), deepcopy(chance.choice(ODD))
    if not keys or chance.random() < 0.15:
        if isinstance(place, dict):
            place[chance.choice(("x", "cron", "every", "name", "", 5))] = odd
        else:
            place.append(odd)
    elif chance.random() < 0.15:
        del place[chance.choice(keys)]
    else:
        place[chance.choice(keys)] = odd


def test_a_file_with_odd_values(tmp_path: Path) -> None:
    """G11: settings, or one line per problem in the form that is promised."""
    file, refused, tried = tmp_path / "baton.yaml", 0, 0
    for chance in seeds():
        tried += 1
        file.write_text(yaml.safe_dump(spoiled(chance, SOUND), allow_unicode=chance.random() < 0.5))
        try:
            load(file, {})
        except ConfigError as error:
            refused += 1
            wrong = [str(each) for each in error.problems if not LINE.fullmatch(str(each))]
            assert not wrong, wrong
    assert refused > tried / 2


def test_a_stored_definition_with_odd_values() -> None:
    """G11: a schedule whose ticks can be told, or an error that names it."""
    sound = to_json(Schedule(name="a", every_seconds=30.0))
    refused = 0
    for chance in seeds():
        try:
            timing = timing_of(from_json("a", "default", b"", spoiled(chance, sound)), "orders")
            timing.next_tick(NOW)
        except (DamagedRow, InvalidArgument):
            refused += 1
    assert refused > 5


_CRONS = (
    "0 2 * * *",
    "*/5 * * * *",
    "0 0 29 2 *",
    "H H(0-5) * * *",
    "0 0 12 * * MON-FRI",
    "@daily",
)
_PIECES = ("*", "/", "-", ",", "?", "L", "W", "#", "H", "(", ")", "@", " ", "\t", "0", "59", "60",
           "9" * 30, "JAN", "SUN", "7", "-1", "*/0", "1-", "é", "\0", "٣")  # fmt: skip


def test_a_cron_expression_with_odd_pieces() -> None:
    """G11: it fires some day, or it is refused; either way at once."""
    refused = 0
    for chance in seeds():
        text = list(chance.choice(_CRONS))
        for _ in range(chance.randint(1, 4)):
            where = chance.randrange(len(text) + 1)
            text[where : where + chance.randrange(3)] = chance.choice(_PIECES)
        try:
            tick = parse_cron("".join(text)).next(NOW)
        except CronError:
            refused += 1
        else:
            assert tick is not None, "".join(text)
            assert tick > NOW
    assert refused > 5


_DIGITS = ("0", "1", "9", ".", "-", "+", "e", "_", " ", "s", "ms", "m", "h", "d", "inf", "nan", "٣",
           "9" * 400, "\n")  # fmt: skip


def test_a_duration_of_odd_pieces() -> None:
    """G11: seconds that are neither negative nor endless, or a ValueError."""
    for chance in seeds():
        text = "".join(chance.choice(_DIGITS) for _ in range(chance.randint(1, 5)))
        try:
            seconds = duration.parse(text)
        except ValueError:
            continue
        assert 0 <= seconds < float("inf"), text


@pytest.mark.parametrize("text", ["1s", "500ms", "7d", "3.2s"])
def test_sound_durations_are_taken(text: str) -> None:
    """The search above would be content with a parser that refuses everything."""
    assert duration.parse(text) > 0
