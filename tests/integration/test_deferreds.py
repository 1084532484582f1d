"""Deferreds on a real Postgres, seen from two pods."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from time import monotonic

import psycopg
import pytest
from structlog.testing import capture_logs

from sidecar.adapters.postgres.listener import PostgresHints
from sidecar.adapters.postgres.migrate import migrate
from sidecar.deferreds import Deferreds
from sidecar.model.deferred import Deferred, DeferredState
from sidecar.model.errors import (
    AlreadyExists,
    AnswerLost,
    DamagedRow,
    DeadlineExceeded,
    Fenced,
    InvalidArgument,
    LimitExceeded,
    NotFound,
)
from sidecar.model.run import RunRef
from sidecar.model.validation import VALUE_BYTES_MAX
from tests.integration.deferreds_pods import EPOCH, Pod, execute, lead, pod, start_run, take_over
from tests.lab.proxy import FaultProxy

UNKNOWN = "bdt_" + "A" * 43


@pytest.fixture
async def pods(database_url: str) -> AsyncIterator[tuple[Pod, Pod]]:
    await migrate(database_url, "baton")
    async with pod(database_url) as one, pod(database_url) as two:
        await lead(one)
        yield one, two


async def _waiting(pod: Pod, token: str, seconds: float = 10.0) -> "asyncio.Task[Deferred]":
    """A wait that has read the deferred as pending and lies still."""
    task = asyncio.create_task(pod.deferreds.wait(token, seconds=seconds))
    await asyncio.sleep(0.2)
    assert not task.done()
    return task


async def test_what_one_pod_awaits_another_completes_at_once(pods: tuple[Pod, Pod]) -> None:
    one, two = pods
    seconds = []
    for n in range(7):
        token = await one.deferreds.create(f"approval-{n}")
        wait = await _waiting(one, token)
        ended = await two.deferreds.complete(token, b"yes")
        began = monotonic()
        assert await wait == ended
        assert (ended.state, ended.value) == (DeferredState.COMPLETED, b"yes")
        seconds.append(monotonic() - began)
    assert min(seconds) < 0.1, seconds


async def test_a_run_awaits_through_a_change_of_leader(pods: tuple[Pod, Pod]) -> None:
    """G5: the next attempt is given the same token, and what was completed meanwhile."""
    one, two = pods
    run = await start_run(one)
    token = await one.deferreds.create("approval", run=run)
    wait = await _waiting(one, token)
    wait.cancel()  # the old leader is gone
    next_attempt = await take_over(two, run)
    await two.deferreds.complete(token, b"yes")
    assert await two.deferreds.create("approval", run=next_attempt, ttl_seconds=1) == token
    deferred = await two.deferreds.wait(token, seconds=0)
    assert (deferred.value, deferred.run_id) == (b"yes", run.run_id)
    assert deferred.expires_at is None  # the time to live counts from the first creation


async def test_a_deferred_belongs_to_its_run_and_name(pods: tuple[Pod, Pod]) -> None:
    one, two = pods
    first, second = await start_run(one), await start_run(one)
    tokens = [
        await at.deferreds.create(name, run=run)
        for at in pods
        for run in (None, first, second)
        for name in ("a", "b")
    ]
    assert tokens[:6] == tokens[6:]
    assert len(set(tokens)) == 6
    made = await asyncio.gather(*(p.deferreds.create("at once") for p in (one, two) * 10))
    assert len(set(made)) == 1


async def test_a_run_that_is_not_live_makes_nothing(pods: tuple[Pod, Pod]) -> None:
    """G3."""
    one, _ = pods
    run = await start_run(one)
    await one.deferreds.create("made before", run=run)
    newer = await take_over(one, run)
    await lead(one, newer.epoch + 1)  # and once more: the run's own row does not know it yet
    for old in (run, newer, RunRef(run.run_id, 9, newer.epoch), RunRef(0, 1, EPOCH)):
        for name in ("new", "made before"):
            with pytest.raises(Fenced):
                await one.deferreds.create(name, run=old)
    await lead(one, newer.epoch)
    await execute(
        one.url,
        "UPDATE baton.run SET state = 'ended', outcome = 'succeeded', finished_at = now()",
    )
    with pytest.raises(Fenced):
        await one.deferreds.create("new", run=newer)
    assert await execute(one.url, "SELECT name FROM baton.deferred") == [("made before",)]


async def test_a_takeover_under_way_comes_before_the_creation(pods: tuple[Pod, Pod]) -> None:
    """G3: the creation waits for the term's row and then finds itself fenced."""
    one, _ = pods
    run = await start_run(one)
    async with await psycopg.AsyncConnection.connect(one.url) as successor:
        await successor.execute("UPDATE baton.term SET epoch = epoch + 1")
        create = asyncio.create_task(one.deferreds.create("late", run=run))
        await asyncio.sleep(0.2)
        assert not create.done()
        await successor.commit()
    with pytest.raises(Fenced):
        await create


async def test_of_racing_completions_exactly_one_wins(pods: tuple[Pod, Pod]) -> None:
    one, two = pods
    token = await one.deferreds.create("race")
    results = await asyncio.gather(
        *((one, two)[n % 2].deferreds.complete(token, b"%d" % n) for n in range(20)),
        *((one, two)[n % 2].deferreds.fail(token, f"{n}") for n in range(10)),
        return_exceptions=True,
    )
    [winner] = [result for result in results if isinstance(result, Deferred)]
    losers = [result for result in results if isinstance(result, AlreadyExists)]
    assert len(losers) == 29
    assert {loser.existing for loser in losers} == {winner.value}
    assert await one.deferreds.get(token) == winner


async def test_the_first_end_stands_and_the_same_again_is_fine(pods: tuple[Pod, Pod]) -> None:
    one, two = pods
    completed, failed = [await one.deferreds.create(name) for name in ("completed", "failed")]
    value = await one.deferreds.complete(completed, b"1")
    error = await one.deferreds.fail(failed, "no")
    assert await two.deferreds.complete(completed, b"1") == value
    assert await two.deferreds.fail(failed, "no") == error
    for token, standing in ((completed, value), (failed, error)):
        with pytest.raises(AlreadyExists):
            await two.deferreds.complete(token, b"2")
        with pytest.raises(AlreadyExists):
            await two.deferreds.fail(token, "yes")
        assert await one.deferreds.wait(token, seconds=0) == standing


async def test_a_completion_whose_answer_was_lost_is_repeated(pods: tuple[Pod, Pod]) -> None:
    """G7: it is stored, repeating it says so, and whoever waits is woken."""
    one, _ = pods
    token = await one.deferreds.create("paid")
    wait = await _waiting(one, token)
    with FaultProxy.before(one.url) as proxy:
        async with pod(proxy.url(one.url), listen=False) as far:
            await far.deferreds.get(token)
            lost = proxy.drop_next_answer(b"UPDATE 1")
            with pytest.raises(AnswerLost):
                await far.deferreds.complete(token, b"42")
            assert lost.is_set()
            proxy.heal()
            await far.deferreds.complete(token, b"42")
    await one.deferreds.complete(token, b"42")
    assert (await wait).value == b"42"


async def test_one_that_expires_says_so_in_time_and_for_ever(pods: tuple[Pod, Pod]) -> None:
    one, two = pods
    began = monotonic()
    token = await one.deferreds.create("soon", ttl_seconds=0.5)
    expired = await two.deferreds.wait(token)
    assert 0.3 < monotonic() - began < 10  # the next poll would come after 30
    assert expired.state is DeferredState.EXPIRED
    assert expired.finished_at == expired.expires_at
    with pytest.raises(AlreadyExists, match="expired"):
        await one.deferreds.complete(token, b"late")
    unasked = await one.deferreds.create("nobody asked", ttl_seconds=0.01)
    await asyncio.sleep(0.05)
    with pytest.raises(AlreadyExists, match="expired"):
        await one.deferreds.fail(unasked, "late")
    # Even if the clock steps back behind its expiry.
    await execute(one.url, "UPDATE baton.deferred SET expires_at = now() + interval '1 h'")
    assert (await one.deferreds.get(token)).state is DeferredState.EXPIRED


async def test_completion_and_expiry_at_once_never_contradict_each_other(
    pods: tuple[Pod, Pod],
) -> None:
    one, two = pods
    states = set()
    for n in range(30):
        ttl = 0.06
        token = await one.deferreds.create(f"close-{n}", ttl_seconds=ttl)

        async def completed(token: str = token, pause: float = ttl + (n - 15) / 1000) -> object:
            await asyncio.sleep(pause)
            return await two.deferreds.complete(token, b"1")

        answers = await asyncio.gather(
            one.deferreds.wait(token),
            two.deferreds.wait(token),
            completed(),
            return_exceptions=True,
        )
        final = await one.deferreds.get(token)
        states.add(final.state)
        assert [a.state for a in answers[:2] if isinstance(a, Deferred)] == [final.state] * 2
        assert isinstance(answers[2], Deferred) == (final.state is DeferredState.COMPLETED)
    assert DeferredState.EXPIRED in states


async def test_a_completion_under_way_keeps_it_from_expiring(pods: tuple[Pod, Pod]) -> None:
    """Nobody is told that it expired while its completion may yet commit."""
    one, _ = pods
    token = await one.deferreds.create("tight", ttl_seconds=0.3)
    async with await psycopg.AsyncConnection.connect(one.url) as slow:
        await slow.execute("UPDATE baton.deferred SET state = 'completed', finished_at = now()")
        wait = asyncio.create_task(one.deferreds.wait(token, seconds=5))
        await asyncio.sleep(0.6)
        assert not wait.done()
        assert (await one.deferreds.get(token)).state is DeferredState.PENDING
        await slow.commit()
    assert (await wait).state is DeferredState.COMPLETED


async def test_a_wait_ends_at_its_deadline(pods: tuple[Pod, Pod]) -> None:
    one, _ = pods
    token = await one.deferreds.create("never", ttl_seconds=3600)
    for seconds in (0.0, 0.3):
        began = monotonic()
        with pytest.raises(DeadlineExceeded):
            await one.deferreds.wait(token, seconds=seconds)
        assert seconds <= monotonic() - began < seconds + 10  # before any poll
    with pytest.raises(InvalidArgument, match="timeout"):
        await one.deferreds.wait(token, seconds=-1)


async def test_waits_are_limited_in_length_and_number(
    pods: tuple[Pod, Pod], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = pods
    monkeypatch.setattr("sidecar.deferreds.WAIT_SECONDS_MAX", 0.5)
    monkeypatch.setattr("sidecar.deferreds.WAITS_MAX", 2)
    token = await one.deferreds.create("crowded")
    waits = [asyncio.create_task(one.deferreds.wait(token, seconds=1e9)) for _ in range(2)]
    await asyncio.sleep(0)  # both are entered before they read
    with pytest.raises(LimitExceeded):
        await one.deferreds.wait(token)
    for wait in waits:
        with pytest.raises(DeadlineExceeded):
            await wait
    await one.deferreds.complete(token, b"1")
    assert (await one.deferreds.wait(token)).value == b"1"


async def test_unknown_and_malformed_tokens_get_a_clear_error(
    pods: tuple[Pod, Pod], database_url: str
) -> None:
    """G11, G12: also for a token of another cluster in the same database."""
    one, _ = pods
    async with pod(database_url, cluster="another") as stranger:
        foreign = await stranger.deferreds.create("theirs")
    for token, kind in ((UNKNOWN, NotFound), (foreign, NotFound), ("nonsense", InvalidArgument)):
        for call in (
            one.deferreds.get(token),
            one.deferreds.wait(token, seconds=1),
            one.deferreds.complete(token, b""),
            one.deferreds.fail(token, "no"),
        ):
            with pytest.raises(kind) as refused:
                await call
            assert token not in str(refused.value)


async def test_a_value_of_one_mebibyte_passes_unchanged(pods: tuple[Pod, Pod]) -> None:
    one, two = pods
    token = await one.deferreds.create("big")
    value = bytes(range(256)) * (VALUE_BYTES_MAX // 256)
    wait = await _waiting(one, token)
    await two.deferreds.complete(token, value)
    assert (await wait).value == value


async def test_no_token_is_stored_or_logged(pods: tuple[Pod, Pod]) -> None:
    """G12."""
    one, _ = pods
    with capture_logs() as lines:
        token = await one.deferreds.create("secret")
        await one.deferreds.complete(token, b"1")
        with pytest.raises(AlreadyExists) as refused:
            await one.deferreds.complete(token, b"2")
    rows = await execute(one.url, "SELECT d::text FROM baton.deferred d")
    hidden = token.removeprefix("bdt_")
    for text in (str(rows), str(lines), str(refused.value), repr(await one.deferreds.get(token))):
        assert hidden not in text
        assert hidden.encode().hex() not in text


async def test_deferreds_read_at_once_are_told_apart(pods: tuple[Pod, Pod]) -> None:
    """G11: whoever asks at the same moment shares a statement, and gets an answer of his own."""
    one, two = pods
    names = ("pending", "completed", "expired", "damaged", "gone")
    tokens = [await one.deferreds.create(name, ttl_seconds=60.0) for name in names]
    await two.deferreds.complete(tokens[1], b"1")
    async with await psycopg.AsyncConnection.connect(one.url, autocommit=True) as connection:
        for statement in (
            "UPDATE baton.deferred SET expires_at = created_at WHERE name = 'expired'",
            "ALTER TABLE baton.deferred DROP CONSTRAINT deferred_state_check",
            "UPDATE baton.deferred SET state = 'odd', finished_at = now() WHERE name = 'damaged'",
            "DELETE FROM baton.deferred WHERE name = 'gone'",
        ):
            await connection.execute(statement.encode())
    answers = await asyncio.gather(
        *(one.deferreds.get(token) for token in (*tokens, *tokens)), return_exceptions=True
    )
    told = [a.state.value if isinstance(a, Deferred) else type(a) for a in answers]
    assert told == ["pending", "completed", "expired", DamagedRow, NotFound] * 2
    assert (await two.deferreds.get(tokens[2])).state == "expired"


class _Counted:
    """A store that counts what is asked of the real one."""

    def __init__(self, pod: Pod) -> None:
        self._store = pod.store
        self.create, self.end, self.prune = pod.store.create, pod.store.end, pod.store.prune
        self.reads = self.polls = 0

    async def get(self, ids: Sequence[bytes]) -> list[Deferred | DamagedRow | None]:
        self.reads += len(ids)
        return await self._store.get(ids)

    async def ended(self, ids: Sequence[bytes], limit: int) -> list[Deferred]:
        self.polls += 1
        return await self._store.ended(ids, limit)


async def test_many_waits_share_one_poll_and_are_all_answered(pods: tuple[Pod, Pod]) -> None:
    """Without any hint, and more ended at once than one statement gives."""
    one, two = pods
    store = _Counted(one)
    deaf = PostgresHints(
        one.database, lambda: one.url, channel="nobody"
    )  # never run: it hears nothing
    deferreds = Deferreds(store, deaf, poll_seconds=0.5)
    began = monotonic()
    serving = asyncio.create_task(deferreds.run())
    tokens = [await two.deferreds.create(f"n-{n}") for n in range(50)]
    waits = [asyncio.create_task(deferreds.wait(token, seconds=120)) for token in tokens * 4]
    async with asyncio.timeout(60):
        while store.polls < 3:  # noqa: ASYNC110 - any condition will do
            await asyncio.sleep(0.05)
    assert store.reads == len(waits)
    assert store.polls <= (monotonic() - began) / 0.5 + 1
    assert one.database.open_connections <= 4
    for token in tokens:
        await two.deferreds.complete(token, token.encode())
    answers = await asyncio.gather(*waits)
    assert [answer.value.decode() for answer in answers] == tokens * 4
    assert store.reads == len(waits)
    assert deferreds._waits.ids() == []
    serving.cancel()


async def test_hints_for_others_do_not_keep_the_poll_from_coming(pods: tuple[Pod, Pod]) -> None:
    one, two = pods
    deaf = PostgresHints(one.database, lambda: one.url, channel="nobody")
    deferreds = Deferreds(one.store, deaf, poll_seconds=0.4)
    serving = asyncio.create_task(deferreds.run())
    token = await two.deferreds.create("overheard")
    wait = asyncio.create_task(deferreds.wait(token, seconds=120))
    await asyncio.sleep(0.1)
    await two.deferreds.complete(token, b"1")
    async with asyncio.timeout(60):
        while not wait.done():
            deaf.notify("deferreds", "00" * 32)
            await asyncio.sleep(0.1)
    assert wait.result().value == b"1"
    serving.cancel()


async def test_no_failure_ends_the_answering(
    pods: tuple[Pod, Pod], monkeypatch: pytest.MonkeyPatch
) -> None:
    """G11: an error that nobody thought of is answered by the next turn."""
    one, two = pods
    store = _Counted(one)
    real, failures = store.ended, [ValueError("on purpose")]

    async def ended(ids: Sequence[bytes], limit: int) -> list[Deferred]:
        if failures:
            raise failures.pop()
        return await real(ids, limit)

    monkeypatch.setattr(store, "ended", ended)
    deaf = PostgresHints(one.database, lambda: one.url, channel="nobody")
    deferreds = Deferreds(store, deaf, poll_seconds=0.2)
    serving = asyncio.create_task(deferreds.run())
    token = await deferreds.create("patient")
    wait = asyncio.create_task(deferreds.wait(token, seconds=120))  # then it looks for itself
    async with asyncio.timeout(60):
        while failures:  # noqa: ASYNC110 - any condition will do
            await asyncio.sleep(0.05)
    await two.deferreds.complete(token, b"1")
    async with asyncio.timeout(60):
        assert (await wait).value == b"1"
    serving.cancel()


async def test_a_wait_outlives_an_outage_of_postgres(pods: tuple[Pod, Pod]) -> None:
    one, _ = pods
    token = await one.deferreds.create("patient")
    with FaultProxy.before(one.url) as proxy:
        async with pod(proxy.url(one.url), listen=False, poll_seconds=0.2) as far:
            wait = await _waiting(far, token)
            proxy.refuse()
            proxy.cut()
            await one.deferreds.complete(token, b"1")
            await asyncio.sleep(0.7)
            assert not wait.done()
            proxy.heal()
            async with asyncio.timeout(5):
                assert (await wait).value == b"1"


async def test_a_cancelled_wait_leaves_nothing_behind(pods: tuple[Pod, Pod]) -> None:
    one, _ = pods
    token = await one.deferreds.create("left")
    stays = await _waiting(one, token)
    goes = await _waiting(one, token)
    goes.cancel()
    await asyncio.wait({goes})
    await one.deferreds.complete(token, b"1")
    assert (await stays).value == b"1"
    assert one.deferreds._waits.ids() == []


async def test_pruning_forgets_what_ended_and_keeps_what_may_be_asked_for(
    pods: tuple[Pod, Pod],
) -> None:
    one, _ = pods
    run, singleton, forgotten = [
        await start_run(one, k) for k in ("trigger", "singleton", "trigger")
    ]
    made = {
        "old": await one.deferreds.create("old"),
        "pending": await one.deferreds.create("pending"),
        "overdue": await one.deferreds.create("overdue", ttl_seconds=0.01),
        "of a run": await one.deferreds.create("of a run", run=run),
        "of a singleton": await one.deferreds.create("of a singleton", run=singleton),
        "pending of a run": await one.deferreds.create("pending of a run", run=run),
        "orphan": await one.deferreds.create("orphan", run=forgotten),
    }
    for name in ("old", "of a run", "of a singleton"):
        await one.deferreds.complete(made[name], b"")
    await execute(one.url, "DELETE FROM baton.run WHERE id = %(id)s", id=forgotten.run_id)
    assert await one.deferreds.prune(3600) == 0
    await execute(
        one.url,
        """UPDATE baton.deferred SET created_at = created_at - interval '2 h',
               finished_at = finished_at - interval '2 h',
               expires_at = expires_at - interval '2 h'""",
    )
    await one.deferreds.create("fresh")
    assert await one.deferreds.prune(3600) == 4
    left = await execute(one.url, "SELECT name FROM baton.deferred ORDER BY name")
    assert [name for (name,) in left] == ["fresh", "of a run", "pending", "pending of a run"]
    with pytest.raises(NotFound):
        await one.deferreds.get(made["old"])
    # The name may be used anew, and the old token does not open it.
    assert await one.deferreds.create("old") != made["old"]


async def test_pruning_goes_on_until_all_is_gone(pods: tuple[Pod, Pod]) -> None:
    one, two = pods
    await execute(
        one.url,
        """INSERT INTO baton.deferred (id, cluster_id, name, salt, state, finished_at)
           SELECT sha256(n::text::bytea), %(cluster)s, n::text, '', 'completed',
                  now() - interval '1 d'
           FROM generate_series(1, 1700) n""",
        cluster=one.identity.cluster_id,
    )
    pruned = await asyncio.gather(one.deferreds.prune(60), two.deferreds.prune(60))
    await one.deferreds.prune(60)
    assert sum(pruned) <= 1700
    assert await execute(one.url, "SELECT count(*) FROM baton.deferred") == [(0,)]


async def test_a_forged_hint_does_no_harm(pods: tuple[Pod, Pod]) -> None:
    one, two = pods
    token = await one.deferreds.create("steady")
    wait = await _waiting(one, token)
    for detail in ("nonsense", "zz", "00", "é"):
        two.hints.notify("deferreds", detail)
    await asyncio.sleep(0.2)
    assert not wait.done()
    await two.deferreds.complete(token, b"1")
    assert (await wait).value == b"1"
