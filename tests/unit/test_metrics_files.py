"""The dashboard and the alert rules speak of metrics that exist, with labels that they have."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from sidecar import metrics

CHART = Path(__file__).parents[2] / "helm" / "baton"
FILES = CHART / "files"
RULE_TESTS = CHART / "tests" / "alerts" / "alerts_test.yaml"
# What the scrape adds, and what PromQL and Grafana bring along.
SCRAPED = {"namespace", "job", "pod", "instance", "le"}
_NAME = re.compile(r"\b(?:baton|singleton|process|python)_[a-z0-9_]+")
_USE = re.compile(r"\b((?:baton|singleton|process)_[a-z0-9_]+)(?:\{([^}]*)\})?")
_GROUPING = re.compile(r"\b(?:by|without)\s*\(([^)]*)\)")


def _labels_by_series() -> dict[str, set[str]]:
    """Every series name that can be asked for, with its labels."""
    found: dict[str, set[str]] = {}
    declared = [each for each in vars(metrics).values() if hasattr(each, "_labelnames")]
    families = [(family, each._labelnames) for each in declared for family in each.describe()]
    families += [
        (family, family._labelnames)  # type: ignore[attr-defined]
        for family in metrics.ENTITIES.describe()
    ]
    suffixes = {"counter": ["_total"], "histogram": ["_bucket", "_count", "_sum"]}
    for family, labels in families:
        for suffix in suffixes.get(family.type, [""]):
            found[family.name + suffix] = set(labels)
    for family in metrics.REGISTRY.collect():
        for sample in family.samples:
            found.setdefault(sample.name, set(sample.labels))
    return found


def _rules() -> list[dict[str, Any]]:
    content = yaml.safe_load((FILES / "alerts.yaml").read_text())
    return [rule for group in content["groups"] for rule in group["rules"]]


def _dashboard() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((FILES / "dashboard.json").read_text())
    return content


def _expressions() -> list[str]:
    panels = [
        target["expr"] for panel in _dashboard()["panels"] for target in panel.get("targets", [])
    ]
    annotations = [each["expr"] for each in _dashboard()["annotations"]["list"]]
    return [rule["expr"] for rule in _rules()] + panels + annotations


@pytest.mark.parametrize("expression", _expressions())
def test_every_metric_and_label_in_use_exists(expression: str) -> None:
    known = _labels_by_series()
    used: set[str] = set()
    for name, selector in _USE.findall(expression):
        assert name in known, f"{name} is no metric of ours"
        selected = set(re.findall(r"([a-z_]+)\s*(?:=~|!~|!=|=)", selector))
        assert selected <= known[name] | SCRAPED
        used |= known[name]
    assert used or _NAME.search(expression)
    for grouping in _GROUPING.findall(expression):
        labels = {label.strip() for label in grouping.split(",")}
        assert labels <= used | SCRAPED
    assert expression.count("(") == expression.count(")")


def test_templates_of_alerts_name_labels_that_their_expression_keeps() -> None:
    for rule in _rules():
        kept = {
            label.strip()
            for grouping in _GROUPING.findall(rule["expr"])
            for label in grouping.split(",")
        }
        text = " ".join(rule["annotations"].values())
        assert set(re.findall(r"\$labels\.([a-z_]+)", text)) <= kept, rule["alert"]
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"].keys() == {"summary", "description"}


def test_alerts_have_names_of_their_own() -> None:
    names = [rule["alert"] for rule in _rules()]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"Baton[A-Za-z]+", name) for name in names)


def test_panels_do_not_overlap_and_have_ids_of_their_own() -> None:
    panels = _dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        assert place["x"] + place["w"] <= 24
        taken |= cells


def _promtool(*arguments: str | Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed: apt-get install prometheus")
    ended = subprocess.run([promtool, *arguments], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_promtool_accepts_the_rules() -> None:
    _promtool("check", "rules", FILES / "alerts.yaml")


def test_alerts_fire_for_what_they_are_about_and_for_nothing_else() -> None:
    _promtool("test", "rules", RULE_TESTS)


def test_every_alert_is_seen_firing() -> None:
    cases = [
        case
        for test in yaml.safe_load(RULE_TESTS.read_text())["tests"]
        for case in test["alert_rule_test"]
    ]
    fired = {case["alertname"] for case in cases if case.get("exp_alerts")}
    assert fired == {rule["alert"] for rule in _rules()}
