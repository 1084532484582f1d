"""Good configurations: what each source means, and that nothing secret is ever shown."""

import os
import re
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict

from sidecar.config import (
    ConfigError,
    Election,
    Jobs,
    Log,
    Postgres,
    SecretSource,
    SecretUnreadable,
    Settings,
    load,
    reference,
    yaml_reader,
)
from sidecar.config.environment import variables
from sidecar.model.definitions import Schedule, Singleton
from sidecar.model.job_queue import QueueSettings

URL = "postgresql://baton:hunter2@db.example:5432/orders"
EVERYTHING = """\
cluster: orders
config_revision: 0
runner: {id_prefix: ""}
app: {name: "", address: 127.0.0.1:50051, token_file: "", health_interval: 1s,
      health_failures: 3, connect_timeout: 5s, max_concurrent: 64}
api: {address: 127.0.0.1:9401, token_file: "", allow_remote: false}
http: {address: 0.0.0.0:9400}
postgres: {url: "", direct_url: "", schema: baton, pool_max: 4, migrate: auto}
redis: {url: "", ttl: 30s, timeout: 100ms}
election: {ping: 1s, lease: 3s, server_lease: 4s, poll: 1s, grace: 3.2s, drain: 20s,
           callback_timeout: 10s, takeover_sla: 10s, rebalance: false, campaign: true}
groups: [default]
health: {heartbeat: 30s, stale_after: 60s, readiness: [app, singletons]}
breaker: {failures: 5, open: 10s}
history: {keep: 7d}
jobs:
  enabled: true
  max_running: 0
  reserve: 10%
  weights: [4, 3, 2, 1]
  keep: 7d
  queues:
    - name: mail
      max_running: 0
      cluster_max_running: 0
      per_key: 1
      rate: 0
      retry: {attempts: 3, initial: 1s, max: 1m}
      timeout: 0s
tracing: {endpoint: ""}
log: {level: info, format: json}
singletons:
  - name: coordinator
    group: default
    expected_interval: 0s
    restart_after: 5s
    ping_url: ""
    state: {version: 1, initial: {}, schema: {}, ttl: 0s}
schedules:
  - name: daily-cleanup
    cron: "0 2 * * *"
    timezone: Europe/Berlin
    group: default
    enabled: true
    payload: '{"days": 30}'
    content_type: application/json
    start_at: null
    end_at: null
    expected_interval: 0s
    skip_if_older_than: 1d
    catch_up: latest
    catch_up_max: 100
    overlap: allow
    retry: {attempts: 3, initial: 1s, max: 1m}
    timeout: 0s
    jitter: 0s
    ping_url: ""
    state: {version: 1, initial: {}, schema: {}, ttl: 0s}
"""


def loaded(path: Path, content: str, environ: dict[str, str] | None = None) -> Settings:
    path = path / "baton.yaml"
    path.write_text(content)
    return load(path, environ or {}, need_postgres=False)


def test_the_written_out_defaults_are_the_defaults(tmp_path: Path) -> None:
    """DESIGN 9.3 names every key with its default."""
    assert loaded(tmp_path, EVERYTHING) == Settings(
        cluster="orders",
        log=Log(format="json"),  # not written out, it depends on where the lines go
        jobs=Jobs(queues=(QueueSettings("mail"),)),
        singletons=(Singleton("coordinator"),),
        schedules=(
            Schedule(
                "daily-cleanup",
                cron="0 2 * * *",
                timezone="Europe/Berlin",
                payload=b'{"days": 30}',
            ),
        ),
    )


def test_the_fast_profile_fits(tmp_path: Path) -> None:
    content = "cluster: a\nelection: {server_lease: 2.5s, ping: 600ms, lease: 1.9s, grace: 2s, "
    fast = loaded(tmp_path, content + "poll: 0.5s}").election
    assert fast == Election(0.6, 1.9, 2.5, 0.5, 2.0)


def test_an_end_that_has_passed_is_no_mistake(tmp_path: Path) -> None:
    """A pod that restarts later starts with the file it had."""
    over = "cluster: a\nschedules:\n  - {name: b, cron: 0 0 1 6 *, end_at: 2020-01-01T00:00:00Z"
    for start in ("}", ", start_at: 2019-05-01T00:00:00Z}"):
        loaded(tmp_path, over + start)


def test_a_start_in_the_year_1_is_no_mistake(tmp_path: Path) -> None:
    """G11: some programs write it where a time was left out."""
    always = "cluster: a\nschedules:\n  - {name: b, every: 1h, start_at: 0001-01-01T00:00:00Z"
    for end in ("}", ", end_at: 2030-01-01T00:00:00Z}"):
        loaded(tmp_path, always + end)


def test_sums_of_decimal_fractions_are_no_obstacle(tmp_path: Path) -> None:
    """3 × 0.2 is more than 0.6 in binary, and 1.05 × 3 more than 3.15."""
    loaded(tmp_path, "cluster: a\nelection: {ping: 200ms, lease: 600ms, grace: 630ms}")
    loaded(tmp_path, "cluster: a\nelection: {grace: 3.15s}")


def test_empty_sections_and_lists_are_what_a_commented_out_file_has(tmp_path: Path) -> None:
    content = "cluster: a\nelection:\n  # lease: 3s\nschedules:\nsingletons: []\n"
    assert loaded(tmp_path, content) == Settings(cluster="a")


def test_a_byte_order_mark_and_windows_line_ends_are_harmless(tmp_path: Path) -> None:
    assert loaded(tmp_path, "\ufeffcluster: a\r\nlog:\r\n  level: debug\r\n").log.level == "debug"


@pytest.mark.parametrize(
    ("timing", "expected"),
    [
        ("at: 2027-01-01T01:30:00+01:30", datetime(2027, 1, 1, tzinfo=UTC)),
        ("at: '2027-01-01t00:00:00z'", datetime(2027, 1, 1, tzinfo=UTC)),
        ("at: 2027-01-01 00:00:00.5Z", datetime(2027, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)),
    ],
)
def test_instants_are_kept_in_utc(tmp_path: Path, timing: str, expected: datetime) -> None:
    (schedule,) = loaded(tmp_path, f"cluster: a\nschedules:\n  - name: b\n    {timing}\n").schedules
    assert schedule.at == expected
    assert schedule.at.tzinfo is UTC


@pytest.mark.parametrize(
    "address", ["127.0.0.2:1", "[::1]:9401", "localhost:65535", "unix:///run/baton/api.sock"]
)
def test_local_addresses_of_the_api(tmp_path: Path, address: str) -> None:
    assert loaded(tmp_path, f"cluster: a\napi: {{address: '{address}'}}").api.address == address


def test_a_remote_api_is_a_deliberate_choice(tmp_path: Path) -> None:
    """G12: nobody is let in without a token."""
    (tmp_path / "token").write_text("hunter2")
    content = "cluster: a\napi: {address: 0.0.0.0:9401, allow_remote: true}"
    environ = {"BATON_API_TOKEN_FILE": str(tmp_path / "token")}
    assert loaded(tmp_path, content, environ).api.allow_remote


@pytest.mark.parametrize(
    "url",
    [
        URL,
        "postgres://db",
        "postgresql:///orders?host=/var/run/postgresql",
        "postgresql://u:p%40ss@a:1,b:2,[::1]:3/orders?target_session_attrs=read-write",
        "postgresql://%2Fvar%2Frun%2Fpostgresql/orders",
        "host=db port=5432 dbname=orders password='its' user = me",
        r"host=db password='a\'b c'",
    ],
)
def test_postgres_urls(url: str) -> None:
    """What we let through, libpq understands."""
    assert load(None, {"BATON_CLUSTER": "a", "BATON_POSTGRES_URL": url}).postgres.url.read() == url
    assert conninfo_to_dict(url)


@pytest.mark.parametrize(
    "url",
    [
        "redis://cache",
        "redis://:hunter2@cache:6379/1",
        "rediss://u:p@[::1]:6379",
        "unix:///run/redis.sock?db=1",
        "redis+sentinel://:p@a:26379,b:26379/primary/0",
        "rediss+cluster://a:1,b:2",
    ],
)
def test_redis_urls(url: str) -> None:
    environ = {"BATON_CLUSTER": "a", "BATON_REDIS_URL": url}
    assert load(None, environ, need_postgres=False).redis.url.read() == url


class TestEnvironment:
    def test_it_wins_over_the_file(self, tmp_path: Path) -> None:
        environ = {
            "BATON_ELECTION_POLL": "500ms",
            "BATON_CONFIG_REVISION": "7",
            "BATON_GROUPS": "a, b",
            "BATON_ELECTION_CAMPAIGN": "false",
            "BATON_HEALTH_READINESS": "",
        }
        found = loaded(tmp_path, "cluster: a\ngroups: [c]\nelection: {poll: nonsense}", environ)
        assert found.election.poll_seconds == 0.5
        assert found.config_revision == 7
        assert found.groups == ("a", "b")
        assert not found.election.campaign
        assert found.health.readiness == ()

    def test_every_scalar_of_the_design_has_a_variable(self) -> None:
        names = {variable for variable, _, _ in variables()}
        assert {"BATON_CLUSTER", "BATON_POSTGRES_URL", "BATON_API_TOKEN_FILE"} <= names
        assert len(names) == 49

    def test_service_links_of_kubernetes_are_ignored(self) -> None:
        environ = {
            "BATON_CLUSTER": "a",
            "BATON_SERVICE_HOST": "10.0.0.1",
            "BATON_SERVICE_PORT": "9400",
            "BATON_SERVICE_PORT_METRICS": "9400",
            "BATON_PORT": "tcp://10.0.0.1:9400",
            "BATON_PORT_9400_TCP": "tcp://10.0.0.1:9400",
            "BATON_PORT_9400_TCP_ADDR": "10.0.0.1",
            "BATON_API_SERVICE_HOST": "10.0.0.1",
            "BATON_HTTP_PORT_9400_TCP_PROTO": "tcp",
        }
        assert load(None, environ, need_postgres=False) == Settings(cluster="a")

    @pytest.mark.parametrize(
        ("overlap", "warned"),
        [("queue", True), ("skip", True), ("replace", True), ("allow", False)],
    )
    def test_catching_up_all_with_an_overlap_that_skips_is_a_warning(
        self, tmp_path: Path, overlap: str, *, warned: bool
    ) -> None:
        file = tmp_path / "baton.yaml"
        schedule = f"{{name: s, every: 1m, catch_up: all, overlap: {overlap}}}"
        file.write_text(f"cluster: c\nschedules: [{schedule}]\n")
        found = load(file, {}, need_postgres=False).warnings
        assert [f"schedule s: overlap: {overlap} skips most" in each for each in found] == (
            [True] if warned else []
        )

    def test_near_misses_outside_of_our_sections_are_warnings(self) -> None:
        environ = {"BATON_CLUSTER": "a", "BATON_CLUSTERS": "b", "BATON_VERSION": "1"}
        (warning,) = load(None, environ, need_postgres=False).warnings
        assert warning == (
            "environment:0: BATON_CLUSTERS: is not a known variable; did you mean BATON_CLUSTER?"
        )

    def test_the_database_is_needed_to_run(self) -> None:
        with pytest.raises(ConfigError, match=r"^environment:0: postgres.url: is not set; "):
            load(None, {"BATON_CLUSTER": "a"})


class TestSecrets:
    def test_none_is_ever_shown(self, tmp_path: Path) -> None:
        """G12: no secret in a log."""
        environ = {"BATON_POSTGRES_URL": URL, "BATON_REDIS_URL": "redis://:hunter2@h"}
        content = "cluster: a\nsingletons: [{name: b, ping_url: 'https://hc/hunter2'}]"
        found = loaded(tmp_path, content, environ)
        assert found.redis.url.read() == "redis://:hunter2@h"
        assert "hunter2" not in f"{found!r} {found} {found.postgres.url!s}"

    def test_a_file_is_read_again_each_time(self, tmp_path: Path) -> None:
        secret = tmp_path / "url"
        secret.write_text(f"  {URL}\n")
        found = load(None, {"BATON_CLUSTER": "a", "BATON_POSTGRES_URL_FILE": str(secret)})
        assert found.postgres.url.read() == URL
        secret.write_text("postgresql://elsewhere\n")
        assert found.postgres.url.read() == "postgresql://elsewhere"
        assert found.postgres.direct_url.read() == "postgresql://elsewhere"

    def test_a_file_that_vanished_says_so(self, tmp_path: Path) -> None:
        with pytest.raises(SecretUnreadable, match="cannot be read: No such file"):
            SecretSource.from_file(tmp_path / "gone").read()

    def test_the_direct_url_is_the_url_unless_given(self) -> None:
        url, direct = SecretSource.of("postgres://a"), SecretSource.of("postgres://b")
        assert Postgres(url=url).direct_url is url
        assert Postgres(url=url, direct_url=direct).direct_url is direct

    @pytest.mark.parametrize("content", ["two\nlines", "tökén", "a\tb"])
    def test_a_token_that_no_call_can_carry_is_refused(self, tmp_path: Path, content: str) -> None:
        """G11, G12: told at the start, and not repeated."""
        (tmp_path / "token").write_text(content)
        with pytest.raises(ConfigError) as refused:
            loaded(tmp_path, f"cluster: a\napp: {{token_file: {tmp_path}/token}}")
        (problem,) = refused.value.problems
        assert "app.token_file" in str(problem)
        assert "is not one line of printable ASCII" in str(problem)
        assert content not in str(problem)

    @pytest.mark.parametrize(
        "content", ["hunter2", "S://u:hun@ter2@h", "S://u:hun/ter2@h", "S://u:hun%ter2@h"]
    )
    @pytest.mark.parametrize("scheme", ["postgresql", "redis"])
    def test_a_file_that_holds_something_else_since_is_not_repeated(
        self, tmp_path: Path, scheme: str, content: str
    ) -> None:
        """G12: libpq and redis-py quote what they do not understand, in the log and to callers."""
        file = tmp_path / "url"
        file.write_text(f"{scheme}://h")
        name = "BATON_REDIS_URL_FILE" if scheme == "redis" else "BATON_POSTGRES_DIRECT_URL_FILE"
        found = load(None, {"BATON_CLUSTER": "a", "BATON_POSTGRES_URL": URL, name: str(file)})
        source = found.redis.url if scheme == "redis" else found.postgres.direct_url
        assert source.read() == f"{scheme}://h"
        file.write_text(content.replace("S", scheme))
        with pytest.raises(SecretUnreadable) as caught:
            source.read()
        assert not re.search("hun|ter", str(caught.value))

    def test_a_pipe_is_told_not_waited_for(self, tmp_path: Path) -> None:
        """G11: nobody may ever write to it, and what is written is there for one reading only."""
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        with pytest.raises(SecretUnreadable, match="is a pipe"):
            SecretSource.from_file(pipe).read()

    def test_tokens_come_from_files(self, tmp_path: Path) -> None:
        (tmp_path / "token").write_text("hunter2\n")
        found = loaded(tmp_path, f"cluster: a\napi: {{token_file: {tmp_path}/token}}")
        assert found.api.token.read() == "hunter2"
        assert not found.app.token
        assert found.app.token.read() == ""


def test_settings_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Settings(cluster="a").cluster = "b"  # type: ignore[misc]


def test_the_reference_names_every_setting_with_its_default() -> None:
    page = reference.markdown()
    assert all(f"`{variable}`" in page for variable, _, _ in variables())
    assert "| `election.grace`<br>`BATON_ELECTION_GRACE` | `3.2s` | " in page
    assert "| `schedules[].retry.attempts` | `3` | " in page
    assert "`singletons[].state.schema`" in page


WORDS = r"""{ } [ ] - : & * &a *a << !! ' " | > \ % ? # ~ , no 1:30 @daily --- ... 0x1f 1e999
"\ud800" election: lease: cron: at: every: groups: state: schema: initial: {schema:{
$ref: '#' pattern: '(' 0001-01-01T00:00:00+23:59 9999-12-31T23:59:59-23:59"""
BLANKS = [
    "cluster: a\n",
    "schedules:\n - name: x\n   ",
    "\n",
    "\n  ",
    " ",
    "\t",
    "\r",
    "\U0010ffff",
]
BITS = [*WORDS.split(), *BLANKS]


def lines_of(path: Path | None, environ: dict[str, str]) -> list[str]:
    """What is reported, or nothing; any other exception than ConfigError fails the test."""
    try:
        load(path, environ, need_postgres=False)
    except ConfigError as error:
        return str(error).splitlines() if len(error.problems) else ["a ConfigError without reason"]
    return []


QUICK = settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
LINE = re.compile(r".+:[0-9]+: .+: .+; .+")


@pytest.fixture(params=[yaml.CSafeLoader, yaml.SafeLoader])
def file(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file read by the parser in C, and by the one in Python where that is not built."""
    monkeypatch.setattr(yaml_reader, "_LOADER", request.param)
    return tmp_path / "F"


@QUICK
@given(content=st.binary(max_size=200))
@example(content=b'cluster: "\\UFFFFFFFF"')
@example(content=b'cluster: "\\ud800"')
@example(content=b'cluster: a\nschedules: [{name: b, every: 1s, payload: "\\ud800"}]')
def test_arbitrary_bytes_give_problems_and_nothing_else(file: Path, content: bytes) -> None:
    """G11: nothing a user sends ends the process."""
    file.write_bytes(content)
    assert all(LINE.fullmatch(line) for line in lines_of(file, {}))


@QUICK
@given(bits=st.lists(st.sampled_from(BITS) | st.text(max_size=3), max_size=30))
def test_shuffled_yaml_gives_problems_and_nothing_else(file: Path, bits: list[str]) -> None:
    """G11."""
    file.write_bytes("".join(bits).encode("utf-8", errors="replace"))
    assert all(LINE.fullmatch(line) for line in lines_of(file, {}))


@QUICK
@given(
    variable=st.sampled_from([variable for variable, _, _ in variables()]),
    text=st.text(alphabet=st.characters(exclude_characters="\0"), max_size=60),
)
def test_arbitrary_variables_give_problems_and_nothing_else(variable: str, text: str) -> None:
    """G11."""
    lines = lines_of(None, {"BATON_CLUSTER": "a", variable: text})
    assert all(LINE.fullmatch(line) for line in lines)
