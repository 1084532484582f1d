"""Metrics: declared once, bounded, named as the design names them."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from sidecar import metrics
from sidecar.metrics.entities import HISTOGRAMS_MAX, SPAN, Entities

# Section 8 of the design: dashboards of users depend on these names and labels.
PROMISED = {
    "baton_jobs_submitted": (),
    "baton_job_queue_depth": ("queue", "state"),
    "baton_job_queue_oldest_seconds": ("queue",),
    "baton_job_dead": ("queue",),
    "singleton_duration_seconds": ("singleton", "type"),
    "singleton_executions": ("singleton", "type"),
    "singleton_errors": ("singleton", "type"),
    "singleton_last_execution": ("singleton", "type"),
    "singleton_state_errors": ("reason",),
    "baton_is_leader": ("group",),
    "baton_epoch": ("group",),
    "baton_takeover_seconds": (),
    "baton_tick_lateness_seconds": (),
    "baton_ticks": ("outcome", "reason"),
    "baton_schedule_next_run_timestamp": ("schedule",),
    "baton_schedule_last_success_timestamp": ("schedule",),
    "baton_callback_seconds": ("method", "code"),
    "baton_cache_errors": (),
    "baton_migration_sla_exceeded": (),
}


def _families() -> dict[str, list[dict[str, str]]]:
    text = generate_latest(metrics.REGISTRY).decode()
    return {
        family.name: [sample.labels for sample in family.samples]
        for family in text_string_to_metric_families(text)
    }


@pytest.fixture(autouse=True)
def _own_names(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(metrics, "entity_label", metrics.CappedNames(2))
    _forget_all()
    yield
    _forget_all()


def _forget_all() -> None:
    """Metrics belong to the process: other tests in it have left their series."""
    for each in vars(metrics).values():
        if getattr(each, "_labelnames", ()) or isinstance(each, Entities):
            each.clear()


def test_every_promised_metric_has_its_name_and_labels() -> None:
    declared = {
        each._name: each._labelnames
        for each in vars(metrics).values()
        if hasattr(each, "_labelnames")
    }
    declared |= {
        family.name: family._labelnames  # type: ignore[attr-defined]
        for family in metrics.ENTITIES.describe()
    }
    assert PROMISED.items() <= declared.items()


def test_process_and_build_are_exposed() -> None:
    families = _families()
    assert {"process_resident_memory_bytes", "baton_build_info"} <= families.keys()
    assert not [name for name in families if name.endswith("_created")]


def test_names_beyond_the_cap_share_one_series() -> None:
    """G11: callers cannot grow the number of series."""
    for name in ("a", "b", *(f"made-up-{n}" for n in range(1000))):
        metrics.ENTITIES.ended(name, "cron", at=1.0, seconds=0.1, good=True)
    families = _families()
    names = {labels["singleton"] for labels in families["singleton_executions"]}
    assert names == {"a", "b", metrics.OTHER}
    assert {labels["singleton"] for labels in families["singleton_last_execution"]} == {"a", "b"}


def test_those_that_share_a_series_are_stale_while_one_of_them_is() -> None:
    """And none of them is once it is deleted, or no longer led here."""
    for name in ("a", "b", "c", "d", "e"):
        metrics.ENTITIES.is_stale(name, "cron", name in ("c", "d"))
    assert _stale(metrics.OTHER) == 1
    metrics.ENTITIES.is_stale("c", "cron", False)
    assert _stale(metrics.OTHER) == 1
    metrics.ENTITIES.forget("d", "cron")
    assert _stale(metrics.OTHER) == 0
    metrics.ENTITIES.is_stale("e", "cron", True)
    metrics.delete_entity("e", "cron")
    assert _stale(metrics.OTHER) == 0
    metrics.ENTITIES.is_stale("e", "cron", True)
    metrics.delete_entity("a", "cron")  # there is room for a name
    metrics.ENTITIES.is_stale("e", "cron", True)
    assert (_stale("e"), _stale(metrics.OTHER)) == (1, 0)


def _stale(name: str) -> float | None:
    labels = {"singleton": name, "type": "cron"}
    return metrics.REGISTRY.get_sample_value("baton_stale", labels)


def test_a_name_of_the_config_is_never_crowded_out() -> None:
    metrics.entity_label("a")
    metrics.entity_label("b")
    metrics.entity_label.reserve(["configured"])
    assert metrics.entity_label("configured") == "configured"
    assert metrics.entity_label("made-up") == metrics.OTHER


def test_what_may_happen_is_shown_before_it_does() -> None:
    """Prometheus misses the first event of a series that was not there before."""
    metrics.declare(["declared"], ["kept"], ["ticking"])
    families = _families()
    assert {"group": "declared"} in families["baton_is_leader"]
    assert {"singleton": "kept", "type": "singleton"} in families["singleton_errors"]
    assert {"singleton": "ticking", "type": "cron"} in families["singleton_executions"]
    assert {"reason": "HeartbeatFailed"} in families["singleton_state_errors"]
    assert {"reason": "stale"} in families["baton_terms_ended"]
    assert {"outcome": "skipped", "reason": "misfire"} in families["baton_ticks"]
    assert {"write": "completion"} in families["baton_fenced_writes"]
    metrics.IS_LEADER.remove("declared")
    metrics.delete_entity("kept", "singleton")
    metrics.delete_entity("ticking", "cron")


def test_gauges_of_what_is_no_longer_led_are_gone() -> None:
    metrics.ENTITIES.ended("a", "cron", at=1.0, seconds=0.1, good=True)
    metrics.ENTITIES("a", "cron").next_run = 1.0
    metrics.ENTITIES.forget("a", "cron")
    families = _families()
    assert families["singleton_last_execution"] == []
    assert families["baton_schedule_next_run_timestamp"] == []
    assert families["singleton_executions"] == [{"singleton": "a", "type": "cron"}]
    metrics.delete_entity("a", "cron")
    assert _families()["singleton_executions"] == []


@given(st.lists(st.floats(0, 200_000)))
def test_durations_are_counted_as_by_the_original(seconds: list[float]) -> None:
    """The same samples as a Histogram of prometheus_client has, to the text of the scrape."""
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    entities = Entities(str)
    ours.register(entities)
    original = Histogram(
        "singleton_duration_seconds",
        "How long an execution of a singleton or schedule took.",
        ("singleton", "type"),
        buckets=SPAN,
        registry=theirs,
    )
    for each in seconds:
        entities.ended("a", "cron", at=1.0, seconds=each, good=True)
        original.labels("a", "cron").observe(each)
    mine = [line for line in generate_latest(ours).decode().splitlines() if "duration" in line]
    assert mine == generate_latest(theirs).decode().splitlines()


def test_only_so_many_have_a_histogram_of_their_own() -> None:
    entities = Entities(str)
    for number in range(HISTOGRAMS_MAX + 10):
        entities.ended(f"s{number}", "cron", at=1.0, seconds=0.1, good=number % 2 == 0)
    durations, executions, *_ = entities.collect()
    counted = {
        s.labels["singleton"]: s.value for s in durations.samples if s.name.endswith("_count")
    }
    assert counted.pop("other") == 10
    assert set(counted.values()) == {1}
    assert len(counted) == HISTOGRAMS_MAX
    assert len(executions.samples) == HISTOGRAMS_MAX + 10
    entities.delete("s0", "cron")
    entities.ended("new", "cron", at=1.0, seconds=0.1, good=True)
    durations, *_ = entities.collect()
    assert "new" in {s.labels["singleton"] for s in durations.samples}


@given(st.lists(st.tuples(st.sampled_from(["admit", "release", "reserve"]), st.text(max_size=3))))
def test_the_cap_holds_whatever_comes(moves: list[tuple[str, str]]) -> None:
    names = metrics.CappedNames(3)
    reserved: set[str] = set()
    live: set[str] = set()
    for move, name in moves:
        if move == "reserve":
            names.reserve([name])
            reserved.add(name)
            live.discard(name)
        elif move == "release":
            names.release(name)
            live.discard(name)
        elif names(name) == name and name not in reserved:
            live.add(name)
        assert len(live - {metrics.OTHER}) <= 3
