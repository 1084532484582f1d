"""The chart: `helm/test` proves how it renders; here, that the product takes what it renders."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from sidecar.cli import check
from sidecar.config.declare import declarations
from sidecar.config.settings import Settings
from tests.integration.helm_lab import (
    CHART,
    SNAPSHOTS,
    Resource,
    container,
    environment,
    of_kind,
    snapshot,
    write_config,
    write_secrets,
)

GUIDE = Path(__file__).parents[2] / "docs/kubernetes.md"
URL = "postgresql://user@db/orders"
SKIPPED = 77


@pytest.fixture
def checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Exit code and output of `baton check` in a container, with all the secrets there are."""
    write_secrets(tmp_path, URL, redis="redis://redis", appToken="a", apiToken="b")

    def check_in(spec: Resource, resources: list[Resource]) -> tuple[int, str]:
        for name, value in environment(spec, tmp_path).items():
            monkeypatch.setenv(name, value)
        if resources:
            write_config(resources, tmp_path)
        return check.run(None), capsys.readouterr().out

    return check_in


def _guide() -> list[Resource]:
    """The resources that the guide spells out."""
    blocks = re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    return next(list(yaml.safe_load_all(block)) for block in blocks if "kind: Job" in block)


def test_the_chart_holds_what_it_promises() -> None:
    command = [str(CHART.parent / "test"), "--built"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    if done.returncode == SKIPPED:
        pytest.skip(output.strip().splitlines()[-1])
    assert done.returncode == 0, output


@pytest.mark.parametrize("name", [name for name in SNAPSHOTS if name != "minimal"])
def test_the_rendered_configuration_is_good(
    name: str, checked: Callable[..., tuple[int, str]]
) -> None:
    """With the variables of the sidecar's container, which must all be known."""
    resources = snapshot(name)
    sidecar = container(of_kind(resources, "Deployment"), "baton")
    assert checked(sidecar, resources) == (0, "")


@pytest.mark.parametrize("name", ["default", "everything"])
def test_the_migration_needs_no_file(name: str, checked: Callable[..., tuple[int, str]]) -> None:
    """It runs before the ConfigMap is there."""
    job = container(of_kind(snapshot(name), "Job"), "migrate")
    assert "BATON_CONFIG" not in {variable["name"] for variable in job["env"]}
    assert checked(job, []) == (0, "")


def test_the_schema_of_values_knows_every_setting() -> None:
    values = json.loads((CHART / "values.schema.json").read_text())
    known = values["properties"]["config"]["properties"]
    for key, _, declaration in declarations(Settings):
        assert key in known
        if declaration.section is not None and "properties" in known[key]:
            inner = {inner for inner, _, _ in declarations(declaration.section)}
            assert set(known[key]["properties"]) == inner, key
    assert set(known) == {key for key, _, _ in declarations(Settings)}


def test_the_guide_shows_what_the_chart_renders(checked: Callable[..., tuple[int, str]]) -> None:
    shown, rendered = _guide(), snapshot("default")
    for kind, name in (("Deployment", "baton"), ("Job", "migrate")):
        mine, theirs = of_kind(shown, kind), of_kind(rendered, kind)
        assert container(mine, name) == container(theirs, name)
        for key in ("securityContext", "automountServiceAccountToken", "enableServiceLinks"):
            here, there = (one["spec"]["template"]["spec"][key] for one in (mine, theirs))
            assert here == there, key
    spec = of_kind(shown, "Deployment")["spec"]["template"]["spec"]
    assert spec["terminationGracePeriodSeconds"] == 30
    assert checked(container(of_kind(shown, "Deployment"), "baton"), shown) == (0, "")
