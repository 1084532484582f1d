"""Rules between settings, checked at start.

Each rule yields the keys it concerns, the problem and what is allowed. The kinds check single
values; rules compare several.
"""

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any

from sidecar.config import addresses, schemas
from sidecar.config.kinds import Instant
from sidecar.config.problems import shown
from sidecar.config.settings import Election, Settings
from sidecar.model import cron
from sidecar.model.definitions import Retry, Schedule, Singleton, State
from sidecar.model.duration import format_duration
from sidecar.model.errors import InvalidArgument
from sidecar.model.job_queue import QueueSettings
from sidecar.model.load import overload_warnings
from sidecar.model.schedule import skips_missed_ticks, timing_of

Violation = tuple[tuple[str, ...], str, str]
Violations = Iterable[Violation]

GROUPS_MAX = 64
_PRIORITIES = 4
_TAKEOVER_SECONDS_MAX = 9.0
_GRACE_FACTOR = 1.05
_POLL_FACTOR = 1.1  # polls are up to a tenth late; the server ends a silent session
_EPSILON = 1e-9  # 3 × 0.1 is a little more than 0.3


def violations(settings: Settings, *, need_postgres: bool) -> Iterator[Violation]:
    """All violations of these settings."""
    if need_postgres and not settings.postgres.url:
        yield ("postgres.url",), "is not set", addresses.POSTGRES_ALLOWED
    yield from _timers(settings.election)
    yield from _groups(settings)
    yield from _listeners(settings)
    yield from _heartbeat(settings)
    yield from _calls(settings)
    yield from _jobs(settings)
    yield from _unique_names("singletons", settings.singletons)
    yield from _unique_names("schedules", settings.schedules)
    for number, singleton in enumerate(settings.singletons):
        yield from _singleton(f"singletons[{number}]", singleton, settings)
    for number, schedule in enumerate(settings.schedules):
        yield from _schedule(f"schedules[{number}]", schedule, settings)


def _timers(election: Election) -> Iterator[Violation]:
    keys: tuple[str, ...]
    ping, lease = election.ping_seconds, election.lease_seconds
    server_lease, poll, grace = (
        election.server_lease_seconds,
        election.poll_seconds,
        election.grace_seconds,
    )
    if 3 * ping > lease + _EPSILON:
        keys = ("election.ping", "election.lease")
        yield keys, f"three pings take {_t(3 * ping)}, the lease is {_t(lease)}", "3 ping <= lease"
    if lease >= server_lease - _EPSILON:
        keys = ("election.server_lease", "election.lease")
        problem = f"the server lease is {_t(server_lease)}, the lease {_t(lease)}"
        yield keys, problem, "lease < server_lease"
    if (pause := _POLL_FACTOR * poll) >= server_lease - _EPSILON:
        keys = ("election.poll", "election.server_lease")
        problem = f"two polls may be {_t(pause)} apart, the server lease is {_t(server_lease)}"
        yield keys, problem, "1.1 poll < server_lease"
    if grace < _GRACE_FACTOR * lease - _EPSILON:
        keys = ("election.grace", "election.lease")
        problem = f"the grace is {_t(grace)}, the lease {_t(lease)}"
        yield keys, problem, "grace >= 1.05 lease"
    if (total := server_lease + poll + grace) > _TAKEOVER_SECONDS_MAX + _EPSILON:
        keys = ("election.server_lease", "election.grace", "election.poll")
        yield keys, f"a takeover may take {_t(total)}", "server_lease + poll + grace <= 9s"


def _t(seconds: float) -> str:
    return format_duration(seconds)


def _groups(settings: Settings) -> Iterator[Violation]:
    count = len(settings.groups)
    if not 1 <= count <= GROUPS_MAX:
        yield ("groups",), f"names {count} groups", f"1 to {GROUPS_MAX} groups"


def _listeners(settings: Settings) -> Iterator[Violation]:
    yield from _reachable("api.address", settings.api.address, settings)
    if settings.web.address:
        yield from _reachable("web.address", settings.web.address, settings)
    listeners = (
        ("api.address", "API", settings.api.address),
        ("http.address", "probes", settings.http.address),
        ("web.address", "web", settings.web.address),
    )
    for (key, what, one), (other_key, other, two) in combinations(listeners, 2):
        if one and two and _meet(one, two):
            problem = f"{what} and {other} both listen on {_place(one)}"
            yield (key, other_key), problem, "two different ports"
    if settings.app.address == settings.api.address:
        keys = ("app.address", "api.address")
        yield keys, f"app and API both have {shown(settings.app.address)}", "two addresses"


def _reachable(key: str, address: str, settings: Settings) -> Iterator[Violation]:
    if addresses.parse(address).is_local:
        return
    if not settings.api.allow_remote:
        keys = (key, "api.allow_remote")
        allowed = "127.0.0.1:PORT, [::1]:PORT or unix:///PATH, else api.allow_remote: true"
        yield keys, f"{shown(address)} can be reached from outside", allowed
    elif not settings.api.token:
        keys = (key, "api.token_file")
        problem = f"{shown(address)} can be reached from outside without a token"
        yield keys, problem, "set api.token_file"


def _meet(one: str, two: str) -> bool:
    """Whether two addresses cannot both be listened on."""
    first, second = addresses.parse(one), addresses.parse(two)
    if first.socket_path or second.socket_path:
        return first.socket_path == second.socket_path
    everywhere = first.is_everywhere or second.is_everywhere
    return first.port == second.port and (everywhere or first.host == second.host)


def _place(address: str) -> str:
    parts = addresses.parse(address)
    return f"port {parts.port}" if parts.port else shown(address)


def _heartbeat(settings: Settings) -> Iterator[Violation]:
    heartbeat, stale_after = settings.health.heartbeat_seconds, settings.health.stale_after_seconds
    if stale_after < 2 * heartbeat - _EPSILON:
        keys = ("health.stale_after", "health.heartbeat")
        problem = f"two heartbeats take {_t(2 * heartbeat)}, stale after {_t(stale_after)}"
        yield keys, problem, "stale_after >= 2 heartbeat"


def _calls(settings: Settings) -> Iterator[Violation]:
    """The call of a singleton stays open: other runs need some of `max_concurrent` too."""
    count, most = len(settings.singletons), settings.app.max_concurrent
    if count >= most:
        keys = ("app.max_concurrent", "singletons")
        problem = f"{count} singletons keep {count} calls open, of {most} in all"
        yield keys, problem, "more than there are singletons"


def _unique_names(
    place: str, entries: Iterable[Singleton | Schedule | QueueSettings]
) -> Iterator[Violation]:
    first: dict[str, int] = {}
    for number, entry in enumerate(entries):
        if first.setdefault(entry.name, number) != number:
            earlier = f"{place}[{first[entry.name]}]"
            keys = (f"{place}[{number}].name", f"{earlier}.name")
            yield keys, f"{shown(entry.name)} is also the name of {earlier}", "a name of its own"


def _group(place: str, group: str, settings: Settings) -> Iterator[Violation]:
    if group not in settings.groups:
        keys = (f"{place}.group", place, "groups")
        yield keys, f"group {shown(group)} is not in groups", "one of " + _listed(settings.groups)


def _listed(groups: tuple[str, ...]) -> str:
    return ", ".join(groups[:10]) + (" and others" if len(groups) > 10 else "")


def _singleton(place: str, singleton: Singleton, settings: Settings) -> Iterator[Violation]:
    yield from _group(place, singleton.group, settings)
    yield from _state(f"{place}.state", singleton.state)


def _jobs(settings: Settings) -> Iterator[Violation]:
    weights = settings.jobs.weights
    if len(weights) != _PRIORITIES:
        allowed = "four: of critical, high, normal and low jobs"
        yield ("jobs.weights",), f"has {len(weights)} numbers", allowed
    yield from _unique_names("jobs.queues", settings.jobs.queues)
    for number, queue in enumerate(settings.jobs.queues):
        yield from _retry(f"jobs.queues[{number}].retry", queue.retry)


def _schedule(place: str, schedule: Schedule, settings: Settings) -> Iterator[Violation]:
    yield from _timing(place, schedule)
    yield from _cron(place, schedule, settings.cluster)
    yield from _window(place, schedule, settings.cluster)
    yield from _group(place, schedule.group, settings)
    yield from _retry(f"{place}.retry", schedule.retry)
    yield from _state(f"{place}.state", schedule.state)


def _timing(place: str, schedule: Schedule) -> Iterator[Violation]:
    timings: dict[str, Any] = {
        "cron": schedule.cron,
        "every": schedule.every_seconds,
        "at": schedule.at,
    }
    given = [f"{place}.{key}" for key, value in timings.items() if value is not None]
    allowed = "exactly one of cron, every and at"
    if len(given) > 1:
        names = " and ".join(key.rpartition(".")[2] for key in given)
        yield (given[1], given[0]), f"both of {names} are set", allowed
    if not given:
        # A timing that its kind refused is among the keys, and suppresses this violation.
        keys = (place, *(f"{place}.{key}" for key in timings))
        yield keys, "has no timing", allowed


def _cron(place: str, schedule: Schedule, cluster: str) -> Iterator[Violation]:
    if schedule.cron is None:
        return
    try:
        hash_key = f"{cluster}/{schedule.name}"
        cron.parse(schedule.cron, timezone=schedule.timezone, hash_key=hash_key)
    except cron.CronError as error:
        problem, _, allowed = str(error).removeprefix("expression: ").partition("; ")
        yield (
            (f"{place}.cron",),
            problem,
            allowed or "5 fields, 6 with seconds first, or @daily and the like",
        )


def _window(place: str, schedule: Schedule, cluster: str) -> Iterator[Violation]:
    keys: tuple[str, ...]
    start, end, at = schedule.start_at, schedule.end_at, schedule.at
    if start and end and start >= end:
        keys = (f"{place}.end_at", f"{place}.start_at")
        yield keys, "the end is not after the start", "start_at < end_at"
    elif at and ((start and at < start) or (end and at >= end)):
        keys = (f"{place}.at", f"{place}.start_at", f"{place}.end_at")
        yield keys, "the time is not between start_at and end_at", Instant().allowed
    elif end and _never_ticks(schedule, cluster):
        keys = (f"{place}.end_at", f"{place}.start_at", f"{place}.cron", f"{place}.timezone")
        yield keys, "never ticks between start_at and end_at", "a window with a tick in it"


def _never_ticks(schedule: Schedule, cluster: str) -> bool:
    """Independent of the clock: a file does not become invalid because `end_at` has passed."""
    try:
        return timing_of(schedule, cluster).never_ticks
    except InvalidArgument:
        return False  # another rule reports it


def _retry(place: str, retry: Retry) -> Iterator[Violation]:
    if retry.initial_seconds > retry.max_seconds:
        keys = (f"{place}.initial", f"{place}.max")
        problem = f"the first pause is {_t(retry.initial_seconds)}, the longest "
        yield keys, problem + _t(retry.max_seconds), "initial <= max"


def _state(place: str, state: State) -> Iterator[Violation]:
    if problem := schemas.schema_problem(state.schema):
        yield (f"{place}.schema",), problem, "a JSON Schema (2020-12)"
    elif problem := schemas.value_problem(state.initial, state.schema):
        keys = (f"{place}.initial", f"{place}.schema")
        yield keys, problem, "an initial state of at most 1 MiB that satisfies state.schema"


def warnings(settings: Settings) -> Iterator[str]:
    """Settings that are allowed but probably a mistake."""
    for schedule in settings.schedules:
        if problem := skips_missed_ticks(schedule.catch_up, schedule.overlap):
            yield f"schedule {schedule.name}: {problem}"
    yield from overload_warnings(settings.schedules)
