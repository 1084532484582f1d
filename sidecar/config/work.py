"""The settings of singletons, schedules and queues: what each field allows, and what it means.

The types and their defaults are in `sidecar.model.definitions` and `sidecar.model.job_queue`. See
`settings` for how keys, attributes and the environment relate.
"""

from sidecar.config import addresses, kinds
from sidecar.config.checks import media_type, time_zone
from sidecar.config.declare import Declaration, describe
from sidecar.model.definitions import Retry, Schedule, Singleton, State
from sidecar.model.job_queue import QueueSettings

_GROUP = Declaration("scalar", "One of `groups`; the leader of this group runs it.", kinds.Name())
_PING_URL = Declaration(
    "scalar",
    "URL that is called after each success, for an external dead man's switch.",
    kinds.Text(addresses.HTTP_ALLOWED, addresses.http_url),
)
_STATE = Declaration("section", "The state that it owns.", section=State)

describe(
    State,
    version=Declaration(
        "scalar",
        "Version of the schema; a new version starts with the state of the older one.",
        kinds.Whole(1, 2**31 - 1),
    ),
    initial=Declaration(
        "json",
        "The state before the first run: a JSON value of at most 1 MiB that matches the schema.",
    ),
    schema=Declaration(
        "json",
        "JSON Schema (2020-12) of the state, with patterns in RE2 syntax; empty: any value.",
    ),
    ttl_seconds=Declaration(
        "scalar",
        "The state expires this long after its last write.",
        kinds.Duration("1s", "3650d", "no end"),
    ),
)

describe(
    Retry,
    attempts=Declaration("scalar", "Maximum number of attempts; 1: no retry.", kinds.Whole(1, 100)),
    initial_seconds=Declaration(
        "scalar",
        "Pause after the first failure; it doubles after each further failure.",
        kinds.Duration("10ms", "1d"),
    ),
    max_seconds=Declaration("scalar", "Maximum pause.", kinds.Duration("10ms", "7d")),
)

describe(
    Singleton,
    name=Declaration("scalar", "Unique among the singletons.", kinds.Name()),
    group=_GROUP,
    expected_interval_seconds=Declaration(
        "scalar",
        "Stale after twice this time without a success or a `Runs.Heartbeat`.",
        kinds.Duration("1s", "3650d", "only the heartbeat is checked"),
    ),
    restart_after_seconds=Declaration(
        "scalar",
        "Pause before a handler that returned is called again.",
        kinds.Duration("10ms", "1d", "at once"),
    ),
    ping_url=_PING_URL,
    state=_STATE,
)

describe(
    Schedule,
    name=Declaration("scalar", "Unique among the schedules.", kinds.Name()),
    cron=Declaration(
        "scalar",
        "When to run, as a cron expression; `H` is a hashed field.",
        kinds.Text("5 fields, 6 with seconds first, or @daily and the like"),
    ),
    every_seconds=Declaration(
        "scalar",
        "Run at `start_at` (default: the Unix epoch) + n × this.",
        kinds.Duration("100ms", "3650d"),
    ),
    at=Declaration("scalar", "Run once, at this time.", kinds.Instant()),
    timezone=Declaration(
        "scalar",
        "Time zone of `cron`.",
        kinds.Text("an IANA name such as Europe/Berlin", time_zone),
    ),
    group=_GROUP,
    enabled=Declaration(
        "scalar", "If false, ticks are skipped with the reason `paused`.", kinds.Boolean()
    ),
    payload=Declaration("scalar", "Passed to each run.", kinds.Payload()),
    content_type=Declaration(
        "scalar", "Media type of the payload.", kinds.Text("a media type", media_type)
    ),
    start_at=Declaration("scalar", "No tick before this time.", kinds.Instant()),
    end_at=Declaration("scalar", "No tick from this time on.", kinds.Instant()),
    expected_interval_seconds=Declaration(
        "scalar",
        "Stale after twice this time without a success.",
        kinds.Duration("1s", "3650d", "derived from the schedule"),
    ),
    skip_if_older_than_seconds=Declaration(
        "scalar",
        "Older ticks are skipped with the reason `misfire`.",
        kinds.Duration("1s", "3650d"),
    ),
    catch_up=Declaration(
        "scalar", "Which of several missed ticks run.", kinds.Choice(("latest", "all", "none"))
    ),
    catch_up_max=Declaration(
        "scalar",
        "With `catch_up: all`, the maximum number of missed ticks that run: the newest ones.",
        kinds.Whole(1, 1000),
    ),
    overlap=Declaration(
        "scalar",
        "What happens to a tick while an earlier run is active. With `queue` at most one run waits,"
        " so most of several missed ticks are skipped, whatever `catch_up` is.",
        kinds.Choice(("allow", "skip", "queue", "replace")),
    ),
    retry=Declaration("section", "What happens after a failed attempt.", section=Retry),
    timeout_seconds=Declaration(
        "scalar", "Time limit of one attempt.", kinds.Duration("10ms", "365d", "none")
    ),
    jitter_seconds=Declaration(
        "scalar",
        "Spreads the start of each run over this time.",
        kinds.Duration("1ms", "1d", "none"),
    ),
    ping_url=_PING_URL,
    state=_STATE,
)

describe(
    QueueSettings,
    name=Declaration("scalar", "Unique among the queues.", kinds.Name()),
    max_running=Declaration(
        "scalar", "Maximum of jobs that run on one pod; 0: no limit.", kinds.Whole(0, 10_000)
    ),
    cluster_max_running=Declaration(
        "scalar", "Maximum of jobs that run in the cluster; 0: no limit.", kinds.Whole(0, 100_000)
    ),
    per_key=Declaration(
        "scalar",
        "Maximum of jobs of one name and key that run; above 1 their order is not kept.",
        kinds.Whole(1, 1000),
    ),
    rate=Declaration("scalar", "Maximum of jobs that start, in the cluster.", kinds.Rate()),
    retry=Declaration(
        "section", "What happens after a failed attempt, unless the job has its own.", section=Retry
    ),
    timeout_seconds=Declaration(
        "scalar",
        "Time limit of one attempt, unless the job has its own.",
        kinds.Duration("10ms", "365d", "none"),
    ),
)
