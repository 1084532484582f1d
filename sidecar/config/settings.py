"""Settings: everything that can be configured, frozen, read once.

Each setting is declared here once, with its default, its kind (what is allowed) and its description
in the configuration reference. The key in the file is the attribute's name without its unit:
`lease_seconds` is `election.lease`, and `BATON_ELECTION_LEASE` in the environment.
"""

# ruff: noqa: RUF009 - these calls return dataclass fields of frozen values

from dataclasses import dataclass
from typing import Literal

from sidecar.config import addresses, kinds, work  # noqa: F401 - describes Schedule and Singleton
from sidecar.config.checks import postgres_schema
from sidecar.config.declare import REQUIRED, entries, numbers, scalar, section, words
from sidecar.config.secret import SecretSource
from sidecar.model.definitions import Schedule, Singleton
from sidecar.model.job_queue import QueueSettings

_POSTGRES_URL = kinds.Secret(addresses.POSTGRES_ALLOWED, addresses.postgres_url)
_REDIS_URL = kinds.Secret(addresses.REDIS_ALLOWED, addresses.redis_url)
_HTTP_URL = kinds.Text(addresses.HTTP_ALLOWED, addresses.http_url)
_TIMER = kinds.Duration("10ms", "9s")


@dataclass(frozen=True, slots=True)
class Runner:
    id_prefix: str = scalar(
        "",
        kinds.Name(optional=True),
        "Prefix of the runner's id; empty: the host name. A unique suffix is always added.",
    )


@dataclass(frozen=True, slots=True)
class App:
    name: str = scalar(
        "",
        kinds.Name(optional=True),
        "Name of the app; another app with a different name in the same cluster is refused.",
    )
    address: str = scalar(
        "127.0.0.1:50051",
        kinds.Address(host_name=True),
        "Where the app serves AppCallback.",
    )
    token: SecretSource = scalar(
        SecretSource(),
        kinds.SecretFile(),
        "File with the token that the sidecar sends to the app; read again when it changes.",
    )
    health_interval_seconds: float = scalar(
        1.0, kinds.Duration("50ms", "1m"), "Time between two health checks of the app."
    )
    health_failures: int = scalar(
        3, kinds.Whole(1, 100), "Consecutive failed checks that make the app unhealthy."
    )
    connect_timeout_seconds: float = scalar(
        5.0, kinds.Duration("50ms", "1m"), "Limit for connecting to the app."
    )
    max_concurrent: int = scalar(
        64,
        kinds.Whole(1, 1024),
        "Maximum of concurrent calls into the app; one of them is reserved for each singleton.",
    )


@dataclass(frozen=True, slots=True)
class Api:
    address: str = scalar(
        "127.0.0.1:9401",
        kinds.Address(),
        "Where the sidecar serves its API: loopback or a socket file.",
    )
    token: SecretSource = scalar(
        SecretSource(),
        kinds.SecretFile(),
        "File with the token that callers of the API must send; read again when it changes.",
    )
    allow_remote: bool = scalar(
        False,
        kinds.Boolean(),
        "Allows an `api.address` that other machines can reach; requires `api.token_file`.",
    )


@dataclass(frozen=True, slots=True)
class Http:
    address: str = scalar(
        "0.0.0.0:9400",
        kinds.Address(socket_file=False),
        "Where probes and metrics are served.",
    )

    @property
    def host(self) -> str:
        return addresses.parse(self.address).host

    @property
    def port(self) -> int:
        return addresses.parse(self.address).port


@dataclass(frozen=True, slots=True)
class Web:
    address: str = scalar(
        "127.0.0.1:9402",
        kinds.Address(optional=True),
        "Where the API is served as JSON over HTTP, with the same token; empty: off.",
    )
    dashboard: Literal["off", "read", "operate"] = scalar(
        "off",
        kinds.Choice(("off", "read", "operate"), style="any"),
        "The dashboard on the same address; `operate` allows it to change things.",
    )


@dataclass(frozen=True, slots=True)
class Postgres:
    url: SecretSource = scalar(
        SecretSource(),
        _POSTGRES_URL,
        "The database, directly or through a pooler. Required to run.",
    )
    direct_url: SecretSource = scalar(
        SecretSource(),
        _POSTGRES_URL,
        "The same database without a pooler, for lock and LISTEN; empty: `postgres.url`.",
    )
    schema: str = scalar(
        "baton",
        kinds.Text(
            "1 to 63 of the characters a-z 0-9 _, the first no digit, not pg_…", postgres_schema
        ),
        "The schema that holds all tables.",
    )
    pool_max: int = scalar(4, kinds.Whole(1, 100), "Maximum of pooled connections.")
    migrate: Literal["auto", "never"] = scalar(
        "auto", kinds.Choice(("auto", "never")), "Whether `baton run` migrates the schema."
    )

    def __post_init__(self) -> None:
        if not self.direct_url:
            object.__setattr__(self, "direct_url", self.url)


@dataclass(frozen=True, slots=True)
class Redis:
    url: SecretSource = scalar(SecretSource(), _REDIS_URL, "The cache; empty: no cache.")
    ttl_seconds: float = scalar(
        30.0, kinds.Duration("1s", "1h"), "Time to live of a cached entry; reads do not extend it."
    )
    timeout_seconds: float = scalar(
        0.1, kinds.Duration("1ms", "5s"), "Limit for one call to the cache."
    )


@dataclass(frozen=True, slots=True)
class Election:
    ping_seconds: float = scalar(1.0, _TIMER, "Time between two pings of the leader (P).")
    lease_seconds: float = scalar(
        3.0,
        kinds.Duration("500ms", "9s"),
        "How long an acknowledged ping is trusted (L); at least 3 pings.",
    )
    server_lease_seconds: float = scalar(
        4.0, _TIMER, "The server ends the leader's session after this silence (N); above the lease."
    )
    poll_seconds: float = scalar(1.0, _TIMER, "Time between two attempts of a standby.")
    grace_seconds: float = scalar(
        3.2, _TIMER, "How long a new leader waits after an unclean end (G); at least 1.05 leases."
    )
    drain_seconds: float = scalar(
        20.0,
        kinds.Duration("10ms", "1h", "end runs at once"),
        "Time for runs to finish before leadership is handed over, OnLoseLeadership included.",
    )
    callback_timeout_seconds: float = scalar(
        10.0, kinds.Duration("100ms", "5m"), "Limit for OnBecomeLeader and OnLoseLeadership."
    )
    takeover_sla_seconds: float = scalar(
        10.0, kinds.Duration("100ms", "1h"), "A takeover that takes longer is counted and logged."
    )
    rebalance: bool = scalar(
        False, kinds.Boolean(), "Hands groups over to runners that lead fewer; interrupts runs."
    )
    campaign: bool = scalar(True, kinds.Boolean(), "False: this runner never leads.")


@dataclass(frozen=True, slots=True)
class Health:
    heartbeat_seconds: float = scalar(
        30.0, kinds.Duration("100ms", "1h"), "Time between two heartbeats of a led entity."
    )
    stale_after_seconds: float = scalar(
        60.0,
        kinds.Duration("200ms", "1d"),
        "Time without a heartbeat after which an entity is stale; at least 2 heartbeats.",
    )
    readiness: tuple[str, ...] = words(
        ("app", "singletons"),
        kinds.Choice(("app", "singletons", "postgres", "redis")),
        "What makes `/readyz` fail.",
    )


@dataclass(frozen=True, slots=True)
class Breaker:
    failures: int = scalar(
        5, kinds.Whole(1, 1000), "Consecutive failed calls that open the breaker."
    )
    open_seconds: float = scalar(
        10.0,
        kinds.Duration("100ms", "1h"),
        "How long it stays open before one probe call is allowed.",
    )


@dataclass(frozen=True, slots=True)
class History:
    keep_seconds: float = scalar(
        7 * 86_400.0, kinds.Duration("1m", "3650d"), "How long finished runs are kept."
    )


@dataclass(frozen=True, slots=True)
class Jobs:
    enabled: bool = scalar(
        True, kinds.Boolean(), "False: this pod executes no jobs. It still submits and shows them."
    )
    max_running: int = scalar(
        0, kinds.Whole(0, 10_000), "Maximum of jobs that run on this pod; 0: what the app takes."
    )
    reserve: float = scalar(
        0.1, kinds.Percent(90), "Share of this pod's slots that only critical jobs get."
    )
    weights: tuple[int, ...] = numbers(
        (4, 3, 2, 1),
        kinds.Whole(1, 100),
        "How starts are shared between critical, high, normal and low jobs while all of them wait.",
    )
    keep_seconds: float = scalar(
        7 * 86_400.0,
        kinds.Duration("1h", "3650d"),
        "How long ended jobs are kept. Dead letters stay until they are replayed or discarded.",
    )
    queues: tuple[QueueSettings, ...] = entries(
        QueueSettings,
        "Queues with limits; the file of the pod that read it last applies. A queue that is not"
        " listed has none.",
    )


@dataclass(frozen=True, slots=True)
class Tracing:
    endpoint: str = scalar(
        "",
        _HTTP_URL,
        "OTLP/gRPC collector, such as http://collector:4317; empty: no traces.",
        show=False,
    )


@dataclass(frozen=True, slots=True)
class Log:
    level: Literal["debug", "info", "warning", "error"] = scalar(
        "info",
        kinds.Choice(("debug", "info", "warning", "error")),
        "The lowest level that is logged.",
    )
    format: Literal["json", "console"] | None = scalar(
        None,
        kinds.Choice(("json", "console")),
        "`null`: console on a terminal, otherwise json.",
    )


@dataclass(frozen=True, slots=True)
class Settings:
    cluster: str = scalar(
        REQUIRED, kinds.Name(), "Name of the cluster: all replicas of one app share it."
    )
    config_revision: int = scalar(
        0,
        kinds.Whole(0, 10**15),
        "Orders old and new files in a rollout; 0: by the time of their first load.",
    )
    runner: Runner = section(Runner, "This sidecar with its app.")
    app: App = section(App, "The app next to the sidecar.")
    api: Api = section(Api, "The gRPC API of the sidecar.")
    http: Http = section(Http, "Probes and metrics.")
    web: Web = section(Web, "The API as JSON over HTTP, and the dashboard.")
    postgres: Postgres = section(Postgres, "The source of truth.")
    redis: Redis = section(Redis, "The cache of state.")
    election: Election = section(
        Election, "Timers must fit: 3P <= L < N, 1.1 poll < N, G >= 1.05 L, N + poll + G <= 9s."
    )
    groups: tuple[str, ...] = words(
        ("default",), kinds.Name(), "The groups, each with one leader; 1 to 64."
    )
    health: Health = section(Health, "The dead man's switch.")
    breaker: Breaker = section(Breaker, "The circuit breaker in front of the app.")
    history: History = section(History, "Finished runs.")
    jobs: Jobs = section(Jobs, "Background work that any pod may execute.")
    tracing: Tracing = section(Tracing, "OpenTelemetry.")
    log: Log = section(Log, "Events on standard error, one per line.")
    singletons: tuple[Singleton, ...] = entries(Singleton, "Processes that only the leader runs.")
    schedules: tuple[Schedule, ...] = entries(Schedule, "Handlers that run at set times.")
    warnings: tuple[str, ...] = ()  # not set by users: logged at the start

    @property
    def run_calls_max(self) -> int:
        """Maximum of concurrent calls for runs: one call is reserved for each singleton."""
        return self.app.max_concurrent - len(self.singletons)
