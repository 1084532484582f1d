"""The modelled tables answer as the real ones do: the same random statements on both.

What the simulator proves is worth what its Postgres is worth.
"""

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sidecar.model.definitions import Retry, Schedule, Singleton
from sidecar.model.run import Outcome, Run, RunKind, RunRef
from sidecar.model.run_records import Completion, Step
from sidecar.model.schedule import SkipReason, timing_of
from sidecar.model.stored_schedule import (
    DueTicks,
    StoredSchedule,
    due_ticks,
    paused,
    resumed,
    updated,
)
from sidecar.model.term import Term
from sidecar.model.verdict import Verdict
from tests.integration.runs_lab import Lab, laboratory
from tests.simulation.planted import AnyAttemptMayComplete
from tests.simulation.run_statements import RunStatements
from tests.simulation.tables import CLUSTER
from tests.simulation.twins import Twin, Twins

_STATEMENTS = 150
_HOUR = 3600.0
Call = Callable[[Twin], Awaitable[Any]]

_SINGLETONS = [Singleton("coordinator", "default", restart_after_seconds=1.0)]
_ALLOW = Schedule(
    "allow", every_seconds=_HOUR, overlap="allow", catch_up="all", retry=Retry(3, 1.0, 60.0)
)
_SCHEDULES = [
    _ALLOW,
    replace(_ALLOW, name="skip", overlap="skip", catch_up="latest"),
    replace(_ALLOW, name="queue", overlap="queue", skip_if_older_than_seconds=5.0),
    replace(_ALLOW, name="replace", overlap="replace"),
    replace(_ALLOW, name="none", catch_up="none"),
]
_AGAIN = Verdict(None, used_retry=True, error="again", cause="retry")
_VERDICTS = (
    *[_AGAIN] * 3,
    Verdict(Outcome.SUCCEEDED, cause="succeeded"),
    Verdict(Outcome.SUCCEEDED, state=b"1", cause="succeeded"),
    Verdict(Outcome.FAILED, error="no", used_retry=True, cause="failed"),
    Verdict(Outcome.SKIPPED, SkipReason.APP_DECLINED, cause="declined"),
    Verdict(None, wait_seconds=_HOUR, used_retry=True, error="later", cause="retry"),
    Verdict(None, delivered=False, error="away", cause="undeliverable"),
)


@pytest.fixture
async def lab(database_url: str) -> AsyncIterator[Lab]:
    async with laboratory(database_url) as lab:
        yield lab


@pytest.mark.parametrize("seed", range(2))
async def test_model_answers_as_postgres_does(lab: Lab, seed: int) -> None:
    """G3 to G6 as the SQL keeps them are what the model keeps."""
    session = _Session(lab, random.Random(seed))
    await session.begin()
    await session.steps(_STATEMENTS)
    assert session.answered > _STATEMENTS / 3, "a history of refusals compares nothing"


async def test_another_rule_in_the_model_is_noticed(lab: Lab) -> None:
    session = _Session(lab, random.Random(0), AnyAttemptMayComplete)
    await session.begin()
    with pytest.raises(AssertionError, match="complete"):
        await session.steps(_STATEMENTS)


class _Session:
    def __init__(
        self, lab: Lab, chance: random.Random, statements: type[RunStatements] = RunStatements
    ) -> None:
        self.answered = 0
        self._twins = Twins(lab, _SINGLETONS, statements)
        self._random = chance
        self._terms: list[Term] = []
        self._claimed: list[dict[str, Any]] = []  # deliveries, told: runs by number
        self._old: list[StoredSchedule] = []
        self._history: list[str] = []

    async def begin(self) -> None:
        for number, definition in enumerate(_SCHEDULES):
            moment = datetime.now(UTC) - timedelta(hours=3 + number, minutes=17)
            await self._twins.add(definition, moment)
        self._terms.append(await self._twins.term("default"))

    async def steps(self, count: int) -> None:
        for _ in range(count):
            await self._step()

    async def _step(self) -> None:
        if self._random.random() < 0.06:
            group = self._random.choice(("default", "default", "other"))
            self._terms.append(await self._twins.term(group))
        name, call = self._random.choice(self._menu())()
        self._history.append(name)
        (model, *model_tables), (real, *real_tables) = await self._twins.ask(call)
        assert model == real, f"{self._history[-5:]}"
        assert model_tables == real_tables, f"{self._history[-5:]}"
        self.answered += not isinstance(real, str)
        if name.startswith("claim ") and isinstance(real, dict):
            self._claimed += real["runs"]

    def _menu(self) -> Sequence[Callable[[], tuple[str, Call]]]:
        often = (self._claim, self._complete, self._ticks)
        return (
            *often, *often, *often, self._complete_old,
            self._landed, self._requeue, self._expire, self._contended, self._skip, self._replace,
            self._cancellations, self._cancel, self._retry, self._checkpoint, self._checkpoints,
            self._singleton, self._pause, self._resume, self._retime, self._regroup,
            self._trigger, self._backfill, self._beat, self._vitals, self._upcoming, self._get,
        )  # fmt: skip

    # ── what is at hand ─────────────────────────────────────────────────────────────────────────

    def _term(self) -> Term:
        """Mostly the one that stands."""
        return self._terms[-1] if self._random.random() < 0.85 else self._random.choice(self._terms)

    def _numbers(self) -> list[int]:
        known = range(len(self._twins.real.ids) + 1)
        return self._random.sample(known, min(len(known), self._random.randint(0, 4)))

    def _number(self) -> int:
        return self._random.randrange(len(self._twins.real.ids) + 1)

    def _name(self) -> str:
        return self._random.choice(_SCHEDULES).name

    def _stored(self) -> StoredSchedule:
        return self._random.choice([*self._twins._tables.schedules.values()])

    def _state(self) -> bytes:
        return str(len(self._history)).encode()

    # ── statements ──────────────────────────────────────────────────────────────────────────────

    def _claim(self) -> tuple[str, Call]:
        term, limit, numbers = self._term(), self._random.randint(1, 6), self._numbers()
        return f"claim {term.epoch} {limit} {numbers}", lambda t: t.runs.claim(
            term, limit=limit, admitted=[t.run_id(n) for n in numbers]
        )

    def _reports(self) -> list[tuple[dict[str, Any], Verdict]]:
        """Of old and of live attempts; one at most is due again at once, because of the order."""
        recent = self._claimed[-10:]
        chosen = self._random.sample(recent, min(len(recent), self._random.randint(1, 3)))
        runs = {each["ref"]["run_id"]: each for each in chosen}
        verdicts = [self._random.choice(_VERDICTS) for _ in runs]
        verdicts = [replace(v, state=self._state()) if v.state else v for v in verdicts]
        at_once = [v for v in verdicts if v.outcome is None and not v.wait_seconds]
        return list(zip(runs.values(), verdicts, strict=True)) if len(at_once) < 2 else []

    def _complete(self) -> tuple[str, Call]:
        term, reports = self._term(), self._reports()
        return f"complete {term.epoch} {reports}", lambda t: t.runs.complete(
            term, [Completion(_delivery(t, each), verdict) for each, verdict in reports]
        )

    def _complete_old(self) -> tuple[str, Call]:
        """A late answer to an attempt that another one has followed."""
        last = {each["ref"]["run_id"]: each for each in self._claimed}
        old = [each for each in self._claimed if each is not last[each["ref"]["run_id"]]]
        if not old:
            return self._claim()
        each, term = old[-1], self._terms[-1]
        return f"complete late {each}", lambda t: t.runs.complete(
            term, [Completion(_delivery(t, each), _VERDICTS[-1])]
        )

    def _landed(self) -> tuple[str, Call]:
        reports = self._reports()
        return f"landed {reports}", lambda t: t.runs.find_lost_completions(
            [Completion(_delivery(t, each), verdict) for each, verdict in reports]
        )

    def _requeue(self) -> tuple[str, Call]:
        term = self._term()
        numbers = self._numbers() if self._random.random() < 0.5 else None
        return f"requeue {term.epoch} {numbers}", lambda t: t.runs.requeue(
            term, known=None if numbers is None else [t.run_id(n) for n in numbers]
        )

    def _expire(self) -> tuple[str, Call]:
        term = self._term()
        return "expire", lambda t: t.runs.expire(term)

    def _contended(self) -> tuple[str, Call]:
        term = self._term()
        return "contended", lambda t: t.runs.contended(term)

    def _skip(self) -> tuple[str, Call]:
        term, numbers = self._term(), self._numbers()
        return f"skip {numbers}", lambda t: t.runs.skip(
            term, [t.run_id(n) for n in numbers], SkipReason.OVERLAP, "test"
        )

    def _replace(self) -> tuple[str, Call]:
        term, numbers = self._term(), self._numbers()
        return f"replace {numbers}", lambda t: t.runs.ask_replacement(
            term, [t.run_id(n) for n in numbers]
        )

    def _cancellations(self) -> tuple[str, Call]:
        term = self._term()
        return "cancellations", lambda t: t.runs.cancellations(term)

    def _cancel(self) -> tuple[str, Call]:
        number = self._number()
        return f"cancel {number}", lambda t: t.records.cancel(t.run_id(number), "test")

    def _retry(self) -> tuple[str, Call]:
        number = self._number()
        return f"retry {number}", lambda t: t.records.retry(t.run_id(number))

    def _checkpoint(self) -> tuple[str, Call]:
        """Of one run, or of several of an epoch at once."""
        if not self._claimed:
            return self._contended()
        last = [_ref(run) for run in self._claimed[-4:]]
        first = self._random.choice(range(len(last)))
        refs = {ref.run_id: ref for ref in last[first:] if ref.epoch == last[first].epoch}.values()
        step = self._random.choice(("charge", "mail"))
        value = str(len(self._history)).encode()
        return f"checkpoint {refs}", lambda t: t.records.checkpoint_all(
            [Step(t.ref(ref), step, value) for ref in refs]
        )

    def _checkpoints(self) -> tuple[str, Call]:
        numbers = self._numbers()
        return "checkpoints", lambda t: t.runs.checkpoints([t.run_id(n) for n in numbers])

    def _singleton(self) -> tuple[str, Call]:
        term = self._term()
        # Its id is known only afterwards: compared with the rows.
        return "singleton", lambda t: _unnumbered(t.runs.start_singleton(term, "coordinator"))

    def _ticks(self) -> tuple[str, Call]:
        term, stored = self._term(), self._stored()
        if self._old and self._random.random() < 0.15:
            stored = self._random.choice(self._old)
        self._old.append(stored)
        ahead = timedelta(hours=self._random.choice((0, 0, 0, 2)))
        ticks = due_ticks(stored, timing_of(stored.definition, CLUSTER), datetime.now(UTC) + ahead)
        if ticks and self._random.random() < 0.5:  # Decided long ago, when they were not old.
            ticks = replace(ticks, steps=tuple(replace(s, reason=None) for s in ticks.steps))
        due: list[DueTicks] = [ticks] if ticks else []
        return f"ticks {term.epoch} {due}", lambda t: t.schedules.claim_ticks(term, due)

    def _pause(self) -> tuple[str, Call]:
        name = self._name()
        return f"pause {name}", lambda t: t.schedules.change(
            name, lambda s, now: paused(s, "", CLUSTER, now)
        )

    def _resume(self) -> tuple[str, Call]:
        name = self._name()
        return f"resume {name}", lambda t: t.schedules.change(
            name, lambda s, now: resumed(s, CLUSTER, now)
        )

    def _retime(self) -> tuple[str, Call]:
        name, every = self._name(), self._random.choice((_HOUR, 2 * _HOUR))
        return f"retime {name}", lambda t: t.schedules.change(
            name,
            lambda s, now: updated(s, replace(s.definition, every_seconds=every), CLUSTER, now),
        )

    def _regroup(self) -> tuple[str, Call]:
        """Mostly back to the group that is led here."""
        name, group = self._name(), self._random.choice(("default", "default", "other"))
        overlap: Any = self._random.choice(("allow", "skip", "queue", "replace"))
        return f"regroup {name} {group} {overlap}", lambda t: t.schedules.change(
            name,
            lambda s, now: updated(
                s, replace(s.definition, group=group, overlap=overlap), CLUSTER, now
            ),
        )

    def _trigger(self) -> tuple[str, Call]:
        name = self._name()
        return f"trigger {name}", lambda t: _unnumbered(
            t.schedules.trigger(name, payload=None, request_id=None)
        )

    def _backfill(self) -> tuple[str, Call]:
        name = self._name()
        hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
        ticks = [hour - timedelta(hours=h) for h in range(self._random.randint(2, 12), 1, -1)]
        return f"backfill {name}", lambda t: _count(
            t.schedules.backfill(name, lambda s, now: [x for x in ticks if x <= s.watermark])
        )

    def _beat(self) -> tuple[str, Call]:
        term, older = self._term(), self._random.choice((0.0, _HOUR))
        return f"beat {term.epoch} {older}", lambda t: t.beats.beat(term, older)

    def _vitals(self) -> tuple[str, Call]:
        return "vitals", lambda t: t.beats.read(["default"])

    def _upcoming(self) -> tuple[str, Call]:
        term, horizon = self._term(), self._random.choice((15.0, 3 * _HOUR))

        async def upcoming(twin: Twin) -> Any:
            _, found = await twin.schedules.upcoming(term, horizon_seconds=horizon, limit=100)
            return [_known(stored) for stored in found]

        return "upcoming", upcoming

    def _get(self) -> tuple[str, Call]:
        name = self._name()

        async def get(twin: Twin) -> Any:
            return _known(await twin.schedules.get(name))

        return f"get {name}", get


def _ref(run: dict[str, Any]) -> RunRef:
    return RunRef(**run["ref"])


def _delivery(twin: Twin, told: dict[str, Any]) -> Run:
    return Run(
        ref=twin.ref(_ref(told)),
        kind=RunKind(told["kind"]),
        name=told["name"],
        group=told["group"],
        scheduled_at=datetime.now(UTC),
        idempotency_key="",
    )


async def _unnumbered(call: Awaitable[Any]) -> bool:
    await call
    return True


async def _count(call: Awaitable[list[int]]) -> int:
    return len(await call)


def _known(stored: StoredSchedule) -> tuple[Any, ...]:
    """What a leader reads of a schedule; a watermark may be the moment of a change."""
    watermark = stored.watermark if stored.watermark.minute in (0, 17) else None
    timing = (stored.next_tick, stored.next_due_at if not stored.paused else None)
    return (stored.id, stored.name, stored.version, stored.paused, watermark, *timing)
