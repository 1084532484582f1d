"""The pure election: each move of its diagram, and each way a term can end."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from sidecar.model.election import Election
from sidecar.model.election_statements import REFUSED_PING_SECONDS
from sidecar.model.election_types import (
    Backend,
    Beat,
    Become,
    Blocked,
    CancelBecome,
    CancelWork,
    Connect,
    Done,
    DrainWork,
    HangUp,
    Holder,
    Inspect,
    Inspected,
    Lose,
    Phase,
    Ping,
    Pinged,
    Poll,
    Polled,
    Reap,
    Release,
    Result,
    RunnerSeen,
    StartWork,
    Statement,
    Taken,
    Takeover,
)
from sidecar.model.spreading import DISCOVERY_SECONDS, RANK_DELAY_SECONDS_MAX, SETTLED_SECONDS
from sidecar.model.spreading import rank_delays as ranked
from sidecar.model.term import LossReason
from tests.unit.election_driver import EPOCH, OLD, OTHER, TERM, Driver, G, T


@pytest.fixture
def driver() -> Driver:
    return Driver()


def _lose(reason: LossReason, timeout: float = T.callback_timeout) -> Lose:
    return Lose(TERM, reason, timeout)


# ── standby ─────────────────────────────────────────────────────────────────────────────────────


def test_standby_polls_at_its_rhythm(driver: Driver) -> None:
    assert driver.ask() == Poll((G,), (G,))
    driver = Driver()
    driver.polled()
    assert driver.ask() is None
    driver.now = driver.election.wake_at()
    assert driver.now == pytest.approx(100.0 + 0.9 * T.poll)
    assert isinstance(driver.ask(), Poll)


def test_one_statement_at_a_time(driver: Driver) -> None:
    assert driver.ask()
    assert driver.ask() is None


def test_an_unhealthy_app_does_not_compete(driver: Driver) -> None:
    """G9."""
    driver.election.app_health_changed(False, driver.now)
    assert driver.ask() == Poll((G,), ())


def test_a_runner_that_does_not_campaign_only_looks() -> None:
    driver = Driver(campaign=False)
    assert driver.ask() == Poll((G,), ())
    assert not driver.election.campaigning


def test_a_lock_got_too_late_is_given_back(driver: Driver) -> None:
    """G9: the app turned unhealthy while the try-lock was under way."""
    statement = driver.ask()
    assert statement
    driver.election.app_health_changed(False, driver.now)
    row = Polled(G, True, Holder(), OLD)
    driver.election.result_received(statement, [row], sent_at=driver.now, now=driver.now)
    assert driver.ask() == Release(G, 0, clean=False)


def test_a_notified_release_is_tried_at_once(driver: Driver) -> None:
    driver.polled()
    driver.election.released_elsewhere(G, driver.now)
    assert driver.ask() == Poll((G,), (G,))


def test_a_lower_rank_waits_before_it_tries() -> None:
    """Each of the others goes first for a part of 300 ms."""
    waits = []
    for others in ((), ("a", "b", "c")):
        driver = Driver()
        driver.election.runners_seen([RunnerSeen(r, True, 100.0) for r in others], driver.now)
        driver.polled()
        driver.election.released_elsewhere(G, driver.now)
        waits.append(driver.election.wake_at() - driver.now)
        driver.now = driver.election.wake_at()
        assert driver.ask() == Poll((G,), (G,))
    place = ranked("me", {"default": "other"}, ["a", "b", "c"], {"default": ""})["default"]
    assert place > 0
    assert waits == pytest.approx([0.0, place])


# ── several groups ──────────────────────────────────────────────────────────────────────────────

_FREE = Holder(900, "gone", "", clean=True)


def _several() -> Driver:
    """Both groups are free, and known to be."""
    driver = Driver(groups={"default": G, "other": OTHER})
    driver.answer([Polled(g, False, _FREE, OLD) for g in (G, OTHER)])
    assert driver.election.discovering_peers(driver.now)
    return driver


def test_several_groups_are_tried_after_a_second_look_at_who_else_starts() -> None:
    driver = _several()
    driver.election.runners_seen([], driver.now)
    driver.now += DISCOVERY_SECONDS
    assert driver.ask() is None
    driver.election.runners_seen([], driver.now)
    assert driver.ask() == Poll((G, OTHER), (G, OTHER))


def test_several_groups_wait_for_the_second_look_no_longer_than_for_a_rank() -> None:
    driver = _several()
    assert driver.election.wake_at() == driver.now + RANK_DELAY_SECONDS_MAX
    driver.now = driver.election.wake_at()
    assert driver.ask() == Poll((G, OTHER), (G, OTHER))


def test_the_rank_counts_from_the_second_look() -> None:
    driver = _several()
    driver.now += DISCOVERY_SECONDS
    driver.election.runners_seen([RunnerSeen("a", True, 0.0)], driver.now)
    waits = {g.id: g.rank_delay for g in driver.election.groups.values()}
    assert sorted(waits.values()) == [0.0, RANK_DELAY_SECONDS_MAX], "one for each of the two"
    statement, mine = driver.ask(), min(waits, key=lambda g: waits[g])
    assert statement == Poll((G, OTHER), (mine,))
    rows = [Polled(g, False, _FREE, OLD) for g in (G, OTHER)]
    driver.election.result_received(statement, rows, sent_at=driver.now, now=driver.now)
    assert driver.election.wake_at() == pytest.approx(driver.now + RANK_DELAY_SECONDS_MAX)


def test_an_app_that_turns_healthy_begins_the_campaign_anew() -> None:
    driver = _several()
    driver.election.app_health_changed(False, driver.now)
    driver.now += 60.0
    driver.election.app_health_changed(True, driver.now)
    assert driver.election.discovering_peers(driver.now)
    assert driver.ask() == Poll((G, OTHER), ())


def _leading_both(since: float) -> Driver:
    """Both groups are led here, the other one only since a moment; rebalancing is wished for."""
    driver = Driver(groups={"default": G, "other": OTHER}, rebalance=True)
    for g in driver.election.groups.values():
        for phase in (Phase.CANDIDATE, Phase.BECOMING, Phase.LEADING):
            g.move_to(phase)
        g.locked, g.epoch = True, EPOCH
    driver.election.groups[OTHER].acquired_at = driver.now - since
    return driver


def test_what_is_too_much_goes_to_a_settled_runner() -> None:
    driver = _leading_both(SETTLED_SECONDS)
    driver.election.runners_seen([RunnerSeen("b", True, SETTLED_SECONDS - 1)], driver.now)
    assert driver.effects() == []
    driver.election.runners_seen([RunnerSeen("b", True, SETTLED_SECONDS)], driver.now)
    assert [type(effect) for effect in driver.effects()] == [DrainWork]


def test_nothing_is_handed_to_a_leader_that_has_just_crashed() -> None:
    """It is listed for a while yet, with nothing to lead: its groups are here now."""
    driver = _leading_both(SETTLED_SECONDS - 1)
    driver.election.runners_seen([RunnerSeen("b", True, 1000.0)], driver.now)
    assert driver.effects() == []


def _leaders(starts: Mapping[str, float], groups: Mapping[str, int]) -> dict[int, str]:
    """Who leads what in the end, if runners with healthy apps start at these times."""
    elections: dict[str, Election] = {}
    looks_at, holders = dict(starts), dict.fromkeys(groups.values(), _FREE)
    locks: dict[int, str] = {}

    def result(name: str, statement: Statement, now: float) -> Result:
        match statement:
            case Poll():
                tried = {g: locks.setdefault(g, name) == name for g in statement.try_ids}
                return [Polled(g, tried.get(g, False), holders[g], OLD) for g in statement.read_ids]
            case Takeover():
                holders[statement.group_id] = Holder(EPOCH, name, "", clean=False)
                return Taken(EPOCH, OLD, True, "1", "1")
            case Ping():
                return Pinged(frozenset(statement.group_ids))
        return Done()

    for step in range(200):
        now = 100.0 + step / 100
        for name in (name for name, start in starts.items() if now >= start):
            if name not in elections:
                election = elections[name] = Election(name, T, lambda: 0.0)
                election.join(groups, now)
                election.app_health_changed(True, now)
                election.tick(now)
                election.connect_succeeded(now)
            election = elections[name]
            if now >= looks_at[name]:
                seen = [RunnerSeen(other, True, 0.0) for other in elections if other != name]
                election.runners_seen(seen, now)
                looks_at[name] = now + (
                    DISCOVERY_SECONDS if election.discovering_peers(now) else 5.0
                )
            while statement := election.next_statement(now):
                answer = result(name, statement, now)
                election.result_received(statement, answer, sent_at=now, now=now)
    return locks


def test_groups_spread_over_runners_that_start_together() -> None:
    """Evenly, whatever the names; who starts a second later finds them taken."""
    groups = {f"group-{n}": n for n in range(1, 7)}
    for n in range(20):
        starts = {f"a-{n}": 100.0, f"b-{n}": 100.1, f"c-{n}": 100.19}
        led = Counter(_leaders(starts, groups).values())
        assert sorted(led.values()) == [2, 2, 2]
    assert _leaders({"a": 100.0, "b": 101.0}, groups) == dict.fromkeys(groups.values(), "a")


# ── candidate ───────────────────────────────────────────────────────────────────────────────────


def test_clean_release_is_followed_at_once(driver: Driver) -> None:
    driver.polled(locked=True, clean=True)
    assert driver.phase() is Phase.CANDIDATE
    driver.taken(clean=True)
    assert driver.phase() is Phase.BECOMING


def test_grace_counts_from_the_first_sight_of_the_beat(driver: Driver) -> None:
    """G1."""
    driver.polled()
    seen_at = driver.now
    driver.now += 1.0
    driver.polled(locked=True)
    driver.taken()
    assert driver.pass_time(seen_at + T.grace - driver.now - 0.01) == []
    assert driver.pass_time(0.02) == [Become(TERM, T.callback_timeout)]


def test_a_beat_that_moved_on_begins_the_grace_anew(driver: Driver) -> None:
    """G1: the holder still lived when its last beat was seen."""
    driver.polled()
    driver.now += 1.0
    last = replace(OLD, sequence=6)
    driver.polled(beat=last)
    seen_at = driver.now
    driver.now += 1.0
    driver.polled(locked=True, beat=last)
    driver.taken(found=last)
    assert driver.pass_time(seen_at + T.grace - driver.now - 0.01) == []
    assert driver.pass_time(0.02) == [Become(TERM, T.callback_timeout)]


@pytest.mark.parametrize(
    ("found", "timeline"),
    [(replace(OLD, sequence=6), "1"), (OLD, "2")],
    ids=["a beat not seen before", "seen on another timeline"],
)
def test_grace_counts_from_the_lock(driver: Driver, found: Beat, timeline: str) -> None:
    """G1."""
    driver.polled()
    driver.now += 1.0
    driver.polled(locked=True)
    acquired_at = driver.now
    driver.now += 0.2
    driver.taken(found=found, timeline=timeline)
    driver.ping()
    assert driver.pass_time(acquired_at + T.grace - driver.now - 0.01) == []
    assert driver.pass_time(0.02) == [Become(TERM, T.callback_timeout)]


def test_clean_counts_only_on_its_timeline(driver: Driver) -> None:
    """G1: the failover may have lost the term that followed."""
    driver.polled(locked=True, clean=True)
    driver.taken(clean=True, clean_on="1", timeline="2")
    assert driver.phase() is Phase.CANDIDATE
    assert driver.pass_time(T.grace - 1) == []


def test_a_candidate_pings_and_may_give_up(driver: Driver) -> None:
    driver.polled(locked=True)
    driver.taken(found=replace(OLD, sequence=6))
    driver.ping()
    driver.election.stop(driver.now)
    assert driver.effects() == []
    assert driver.ask() == Release(G, EPOCH, clean=False)


def test_a_candidate_that_led_before_gives_up_without_a_word(driver: Driver) -> None:
    """G1: what its app acknowledged of its last term says nothing of the one before this."""
    driver.lead()
    driver.election.resign(G, LossReason.RESIGNED, driver.now)
    driver.election.work_finished(TERM, driver.now)
    driver.election.lose_finished(TERM, True, driver.now)
    driver.answer(Done())
    assert driver.phase() is Phase.STANDBY
    driver.pass_time(10.0)
    driver.polled(locked=True)
    driver.taken()
    driver.election.stop(driver.now)
    assert driver.ask() == Release(G, EPOCH, clean=False)


def _leads_one_and_takes_the_other() -> Driver:
    driver = _several()
    driver.now += RANK_DELAY_SECONDS_MAX
    driver.answer([Polled(G, True, _FREE, OLD), Polled(OTHER, False, _FREE, OLD)])
    driver.taken(clean=True)
    driver.election.become_finished(TERM, True, driver.now)
    assert driver.phase() is Phase.LEADING
    driver.election.released_elsewhere(OTHER, driver.now)
    driver.answer([Polled(OTHER, True, _FREE, OLD)])
    driver.effects()
    return driver


def _block(driver: Driver, seconds: float) -> list[Statement]:
    """What is asked for while a write holds the row of `other`, and first after that time."""
    asked, until = [], driver.now + seconds
    while isinstance(statement := driver.ask(), Takeover | Ping) and driver.now < until:
        asked.append(statement)
        sent_at, blocked = driver.now, isinstance(statement, Takeover)
        driver.now += 0.5 if blocked else 0.0
        result = Blocked() if blocked else Pinged(frozenset({G}))
        driver.election.result_received(statement, result, sent_at=sent_at, now=driver.now)
        driver.election.tick(driver.now)
    assert statement
    return [*asked, statement]


def test_a_blocked_takeover_costs_no_other_group() -> None:
    """G8: a write may hold the row for as long as a lease; pings go in between."""
    driver = _leads_one_and_takes_the_other()
    again, ping = [Takeover(OTHER, 900)] * 2, Ping((G,), (EPOCH,))
    asked = _block(driver, T.lease - 0.1)
    assert asked == [*again, ping, *again, ping, *again, ping]
    driver.election.result_received(
        ping, Pinged(frozenset({G})), sent_at=driver.now, now=driver.now
    )
    assert driver.phase() is Phase.LEADING


def test_a_takeover_blocked_for_too_long_is_left_to_others() -> None:
    """G1: unlocked, with `clean` as it was; the term next to it goes on."""
    driver = _leads_one_and_takes_the_other()
    acquired_at = driver.now
    asked = _block(driver, 60.0)
    assert asked[-1] == Release(OTHER, 0, clean=False)
    assert driver.now - acquired_at == pytest.approx(T.server_lease)
    assert driver.phase() is Phase.LEADING
    assert driver.effects() == []


def test_a_takeover_goes_above_every_epoch_that_was_seen(driver: Driver) -> None:
    """G2: the server may have lost the last ones in a failover, and its clock may be behind."""
    later = replace(OLD, epoch=2000)
    driver.answer([Polled(G, False, Holder(2000, "other", "host", clean=False), later)])
    driver.election.disconnected(driver.now)
    driver.election.connect_succeeded(driver.now)
    driver.polled(locked=True)
    assert driver.ask() == Takeover(G, 2000)


def test_a_takeover_succeeds_when_the_row_is_free() -> None:
    """G1: the grace counts from the lock, however long the row was held."""
    driver = Driver()
    driver.polled(locked=True)
    acquired_at = driver.now
    driver.answer(Blocked(), after=0.5)
    driver.taken(found=replace(OLD, sequence=6))
    assert driver.phase() is Phase.CANDIDATE
    assert driver.election.wake_at() <= acquired_at + T.grace
    driver.ping()
    assert driver.pass_time(acquired_at + T.grace - driver.now - 0.01) == []
    assert driver.pass_time(0.02) == [Become(TERM, T.callback_timeout)]


def test_blocked_takeovers_take_turns_and_polls_are_not_kept_waiting() -> None:
    """G8: what else there is to do on the session is done first."""
    driver = Driver(groups={"default": G, "other": OTHER, "third": 9})
    driver.now += RANK_DELAY_SECONDS_MAX
    rows = [Polled(g, g != 9, Holder(900, "x", "", clean=False), OLD) for g in (G, OTHER, 9)]
    driver.answer(rows)
    asked = []
    for _ in range(6):
        statement = driver.ask()
        assert statement
        asked.append(statement)
        sent_at, poll = driver.now, isinstance(statement, Poll)
        driver.now += 0.0 if poll else 0.5
        answer: Result = rows[2:] if poll else Blocked()
        driver.election.result_received(statement, answer, sent_at=sent_at, now=driver.now)
    first, second, poll_third = Takeover(G, 900), Takeover(OTHER, 900), Poll((9,), (9,))
    assert asked == [first, second, poll_third, first, second, poll_third]


# ── becoming ────────────────────────────────────────────────────────────────────────────────────


def test_work_starts_when_the_app_has_answered(driver: Driver) -> None:
    driver.take_over()
    assert driver.election.view("default").is_leader
    driver.election.become_finished(TERM, True, driver.now)
    assert driver.phase() is Phase.LEADING
    assert driver.effects() == [StartWork(TERM)]


def test_an_app_that_refuses_is_told_and_others_go_first(driver: Driver) -> None:
    pauses = []
    for _ in range(2):
        driver.polled(locked=True, clean=True)
        driver.taken(clean=True)
        driver.effects()
        driver.election.become_finished(TERM, False, driver.now)
        assert driver.effects() == [_lose(LossReason.RESIGNED)]
        driver.election.lose_finished(TERM, True, driver.now)
        driver.answer(Done())
        pauses.append(driver.election.groups[G].compete_after - driver.now)
        driver.now += T.poll
        assert driver.ask() == Poll((G,), ())
        driver.election.disconnected(driver.now)
        driver.effects()
        driver.now += pauses[-1]
        driver.election.connect_succeeded(driver.now)
    assert pauses == [2.0, 4.0]


def test_the_loss_waits_for_the_end_of_become(driver: Driver) -> None:
    driver.take_over()
    driver.election.app_health_changed(False, driver.now)
    assert driver.effects() == [CancelBecome(TERM)]
    driver.election.become_finished(TERM, False, driver.now)
    assert driver.effects() == [_lose(LossReason.APP_UNHEALTHY, T.unhealthy_callback_timeout)]


# ── leading ─────────────────────────────────────────────────────────────────────────────────────


def test_trust_counts_from_sending(driver: Driver) -> None:
    """G1: a slow answer does not stretch the term."""
    driver.lead()
    driver.ping(after=1.0)
    assert driver.election.view("default").trusted_until == driver.now - 1.0 + T.lease


def test_the_app_is_told_before_the_trust_ends(driver: Driver) -> None:
    """G1."""
    driver.lead()
    driver.ask()
    assert driver.pass_time(T.lease - T.margin - 0.01) == []
    assert driver.pass_time(0.02) == [CancelWork(TERM), _lose(LossReason.LEASE_LOST), HangUp()]
    assert not driver.election.view("default").is_leader


def test_a_broken_connection_ends_the_term(driver: Driver) -> None:
    driver.lead()
    driver.election.disconnected(driver.now)
    assert driver.effects() == [CancelWork(TERM), _lose(LossReason.LEASE_LOST), HangUp()]
    driver.election.lose_finished(TERM, True, driver.now)
    assert driver.phase() is Phase.STANDBY
    assert driver.pass_time(1.0) == [Connect()]


def test_an_answer_of_the_old_session_changes_nothing(driver: Driver) -> None:
    driver.lead()
    driver.now += T.ping
    ping = driver.ask()
    assert isinstance(ping, Ping)
    driver.election.disconnected(driver.now)
    until = driver.election.groups[G].trusted_until
    driver.election.result_received(
        ping, Pinged(frozenset({G})), sent_at=driver.now, now=driver.now
    )
    assert driver.election.groups[G].trusted_until == until


def test_a_ping_that_misses_the_group_means_fenced(driver: Driver) -> None:
    """G3."""
    driver.lead()
    driver.ping(Pinged(frozenset()))
    assert driver.effects() == [CancelWork(TERM), _lose(LossReason.FENCED), HangUp()]


def test_an_unacknowledged_ping_extends_nothing(driver: Driver) -> None:
    driver.lead()
    until = driver.election.groups[G].trusted_until
    driver.ping(Pinged(frozenset({G}), acknowledged=False))
    assert driver.election.groups[G].trusted_until == until
    assert driver.phase() is Phase.LEADING


def test_a_fenced_write_of_this_term_ends_it(driver: Driver) -> None:
    """G3: but not one of an older term."""
    driver.lead()
    driver.election.fenced(replace(TERM, epoch=EPOCH - 1), driver.now)
    assert driver.effects() == []
    driver.election.fenced(TERM, driver.now)
    assert _lose(LossReason.FENCED) in driver.effects()


def test_a_refused_write_of_a_run_is_answered_by_a_ping(driver: Driver) -> None:
    """G3: it ends the term if the ping finds a newer one, and costs a standing one nothing."""
    driver.lead()
    driver.ping()
    driver.now += REFUSED_PING_SECONDS
    driver.election.write_refused(EPOCH, driver.now)
    driver.answer(Pinged(frozenset({G})))
    assert driver.effects() == []
    assert driver.phase() is Phase.LEADING
    driver.now += REFUSED_PING_SECONDS
    driver.election.write_refused(EPOCH, driver.now)
    driver.answer(Pinged(frozenset()))
    assert driver.effects() == [CancelWork(TERM), _lose(LossReason.FENCED), HangUp()]


def test_a_late_write_of_another_term_asks_for_nothing(driver: Driver) -> None:
    driver.lead()
    driver.ping()
    driver.now += T.ping / 2
    driver.election.write_refused(EPOCH - 1, driver.now)
    assert driver.ask() is None


def test_refused_writes_do_not_crowd_out_the_session(driver: Driver) -> None:
    """However many they are, a ping asked for keeps its distance from the one before."""
    driver.lead()
    driver.ping()
    began, pings = driver.now, 0
    while driver.now < began + 0.8 * T.ping:
        driver.election.write_refused(EPOCH, driver.now)
        if ping := driver.ask():
            pinged = Pinged(frozenset({G}))
            driver.election.result_received(ping, pinged, sent_at=driver.now, now=driver.now)
            pings += 1
        assert driver.election.wake_at() > driver.now
        driver.now += 0.001
    assert 1 < pings <= 0.8 * T.ping / REFUSED_PING_SECONDS


def test_an_unhealthy_app_steps_down_without_a_drain(driver: Driver) -> None:
    """G9."""
    driver.lead()
    driver.election.app_health_changed(False, driver.now)
    timeout = T.unhealthy_callback_timeout
    assert driver.effects() == [CancelWork(TERM), _lose(LossReason.APP_UNHEALTHY, timeout)]


# ── the way out ─────────────────────────────────────────────────────────────────────────────────


def test_resign_drains_then_tells_then_releases_cleanly(driver: Driver) -> None:
    driver.lead()
    driver.election.resign(G, LossReason.RESIGNED, driver.now)
    assert driver.phase() is Phase.DRAINING
    assert driver.effects() == [DrainWork(TERM, driver.now + 0.75 * T.drain)]
    assert driver.election.view("default").draining
    driver.election.work_finished(TERM, driver.now)
    assert driver.effects() == [_lose(LossReason.RESIGNED, 0.25 * T.drain)]
    assert not driver.election.view("default").is_leader
    driver.election.lose_finished(TERM, True, driver.now)
    assert driver.ask() == Release(G, EPOCH, clean=True)


def test_a_hand_over_is_not_undone_at_once(driver: Driver) -> None:
    driver.lead()
    driver.election.resign(G, LossReason.RESIGNED, driver.now)
    driver.election.work_finished(TERM, driver.now)
    driver.election.lose_finished(TERM, True, driver.now)
    driver.answer(Done())
    driver.now += T.poll
    assert driver.ask() == Poll((G,), ())


def test_an_unanswered_loss_is_not_clean(driver: Driver) -> None:
    """G1: the successor must wait its grace."""
    driver.lead()
    driver.election.app_health_changed(False, driver.now)
    driver.election.lose_finished(TERM, False, driver.now)
    assert driver.ask() == Release(G, EPOCH, clean=False)


def test_no_term_before_the_loss_of_the_last_one_is_acknowledged(driver: Driver) -> None:
    """G1: the app may still act as the leader of the term that it was not told about."""
    driver.lead()
    driver.election.app_health_changed(False, driver.now)
    driver.election.lose_finished(TERM, False, driver.now)
    driver.answer(Done())
    driver.election.app_health_changed(True, driver.now)
    driver.now += 60.0
    assert driver.election.losses.pending() == [(TERM, LossReason.APP_UNHEALTHY)]
    poll = driver.ask()
    assert poll == Poll((G,), ())
    driver.election.result_received(poll, [], sent_at=driver.now, now=driver.now)
    driver.election.losses.acknowledge(TERM)
    driver.now += 60.0
    assert driver.ask() == Poll((G,), (G,))


def test_an_unacknowledged_loss_ends_the_other_terms_of_the_app() -> None:
    """G1: nothing is sent to an app that may not know that it lost one of its groups."""
    driver = Driver(groups={"default": G, "other": OTHER})
    driver.now += RANK_DELAY_SECONDS_MAX
    holder = Holder(900, "other", "host", clean=True)
    driver.answer([Polled(G, True, holder, OLD), Polled(OTHER, True, holder, OLD)])
    driver.taken(clean=True)
    driver.answer(Taken(EPOCH, Beat(900, 5, "1"), False, "1", "1"))  # its grace has not passed
    assert driver.effects() == [Become(TERM, T.callback_timeout)]
    driver.election.become_finished(TERM, False, driver.now)
    driver.election.lose_finished(TERM, False, driver.now)
    assert driver.election.groups[OTHER].phase is Phase.RELEASING


def test_work_that_does_not_wind_down_is_cancelled(driver: Driver) -> None:
    driver.lead()
    driver.election.stop(driver.now)
    driver.effects()
    while driver.now < 100 + 0.75 * T.drain - 1:
        driver.ping()
    effects = driver.pass_time(1.0)
    assert effects == [CancelWork(TERM), _lose(LossReason.SHUTDOWN, 0.25 * T.drain)]


def test_hurry_does_not_wait_for_the_work(driver: Driver) -> None:
    driver.lead()
    driver.election.stop(driver.now)
    driver.effects()
    driver.election.stop(driver.now, hurry=True)
    assert driver.effects() == [CancelWork(TERM), _lose(LossReason.SHUTDOWN, 0.25 * T.drain)]


def test_stop_comes_to_rest_and_competes_no_more(driver: Driver) -> None:
    driver.lead()
    driver.election.stop(driver.now)
    driver.election.work_finished(TERM, driver.now)
    driver.election.lose_finished(TERM, True, driver.now)
    assert not driver.idle()
    driver.answer(Done())
    assert driver.idle()
    driver.now += 60.0
    assert driver.ask() == Poll((G,), ())


def test_losing_the_session_while_releasing_ends_it(driver: Driver) -> None:
    driver.lead()
    driver.election.stop(driver.now)
    driver.election.work_finished(TERM, driver.now)
    driver.election.lose_finished(TERM, True, driver.now)
    driver.election.disconnected(driver.now)
    assert driver.phase() is Phase.STANDBY
    assert driver.idle()


def test_the_leader_is_asked_to_resign_through_its_ping(driver: Driver) -> None:
    driver.lead()
    driver.election.resign_requested()
    assert isinstance(driver.election.next_statement(driver.now), Ping)
    driver = Driver()
    driver.lead()
    driver.ping(Pinged(frozenset({G}), frozenset({G})))
    assert driver.phase() is Phase.DRAINING


# ── the session and its reaper ──────────────────────────────────────────────────────────────────


def test_a_statement_without_an_answer_costs_the_session(driver: Driver) -> None:
    assert driver.ask()
    assert driver.pass_time(T.lease - 0.01) == []
    assert driver.pass_time(0.02) == [HangUp()]


def test_reconnects_back_off(driver: Driver) -> None:
    driver.election.disconnected(driver.now)
    driver.effects()
    pauses = []
    for _ in range(7):
        pauses.append(driver.election.wake_at() - driver.now)
        assert driver.pass_time(pauses[-1]) == [Connect()]
        driver.election.connect_failed(driver.now)
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 2.5, 2.5])


def _reaped_after(driver: Driver, *, moves: bool) -> float | None:
    """Seconds until the holder, whose beat stands still, is reaped; None within ten."""
    started_at = driver.now
    while driver.now < started_at + 10:
        driver.now += 0.1
        start = datetime(2026, 1, 1, tzinfo=UTC)
        changed_at = start + timedelta(seconds=driver.now if moves else 0)
        match statement := driver.ask():
            case Poll():
                result: Result = [Polled(G, False, Holder(900, "other", "", clean=False), OLD)]
            case Inspect():
                result = Inspected({G: Backend(42, start, changed_at)})
            case Reap():
                assert statement == Reap(G, Backend(42, start, start))
                return driver.now - started_at
            case _:
                continue
        driver.election.result_received(statement, result, sent_at=driver.now, now=driver.now)
    return None


def test_a_backend_that_stands_still_is_reaped(driver: Driver) -> None:
    seconds = _reaped_after(driver, moves=False)
    assert seconds is not None
    assert T.server_lease + 2 <= seconds < T.server_lease + 2 + 3


def test_a_backend_that_does_something_is_left_alone(driver: Driver) -> None:
    assert _reaped_after(driver, moves=True) is None
