"""What the chart renders, read from its snapshots, and laid out in a directory of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parents[2] / "helm/baton"
SNAPSHOTS = sorted(path.stem for path in (CHART / "tests/snapshots").glob("*.yaml"))
# Where the containers find their files.
_PLACES = ("/run/secrets/baton", "/run/baton", "/etc/baton")

Resource = dict[str, Any]


def snapshot(name: str) -> list[Resource]:
    return list(yaml.safe_load_all((CHART / f"tests/snapshots/{name}.yaml").read_text()))


def of_kind(resources: list[Resource], kind: str) -> Resource:
    return next(resource for resource in resources if resource["kind"] == kind)


def container(workload: Resource, name: str) -> Resource:
    spec = workload["spec"]["template"]["spec"]
    everyone = [*spec.get("initContainers", []), *spec["containers"]]
    return next(one for one in everyone if one["name"] == name)


def environment(spec: Resource, directory: Path) -> dict[str, str]:
    """The variables of a container whose files are all in `directory`."""
    return {one["name"]: _moved(one["value"], directory) for one in spec["env"]}


def write_config(resources: list[Resource], directory: Path) -> None:
    config = of_kind(resources, "ConfigMap")["data"]["baton.yaml"]
    (directory / "baton.yaml").write_text(_moved(config, directory))


def write_secrets(directory: Path, postgres_url: str, **others: str) -> None:
    """The files of the volume of secrets."""
    for name, secret in {
        "postgres": postgres_url,
        "postgresDirect": postgres_url,
        **others,
    }.items():
        (directory / name).write_text(secret)


def _moved(text: str, directory: Path) -> str:
    for place in _PLACES:
        text = text.replace(place, str(directory))
    return text
