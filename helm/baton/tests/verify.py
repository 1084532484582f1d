"""Proves the chart; `helm/test` runs it with the tools it needs.

Each check yields what is wrong, one line each; the exit code is 1 if there is anything.
"""

# ruff: noqa: T201, S603 - a command that prints, and that runs the programs it was given

from __future__ import annotations

import argparse
import copy
import difflib
import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import kubernetes_validate
import yaml

from tests.lab.pages import blocks

CHART = Path(__file__).parents[1]
TESTS = CHART / "tests"
ROOT = CHART.parents[1]
GUIDE = "docs/kubernetes.md"
SETS = ("default", "classic", "everything", "minimal")
KUBERNETES = ("1.29", "1.37")  # the oldest with native sidecars, and the newest known
CUSTOM = ("PodMonitor", "PrometheusRule")  # their schemas are not Kubernetes's
RESTRICTED = {
    "runAsNonRoot": True,
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
# What is refused: the change to the default values, and what the message must say.
REFUSALS = (
    ("config.cluster=", "config.cluster: is not set"),
    ("secrets.postgres.name=", "secrets.postgres.name: is not set"),
    ("example.image=", "example.image: is not set"),
    ("config.postgres.url=postgresql://x", "config.postgres.url: belongs into a Secret"),
    ("config.redis.url=redis://x", "config.redis.url: belongs into a Secret"),
    ("config.api.token_file=/x", "name the Secret in secrets.apiToken"),
    ("config.postgres.migrate=auto", "config.postgres.migrate: the migration Job does it"),
    ("config.http.address=127.0.0.1:9400", "the kubelet cannot probe 127.0.0.1:9400"),
    ("config.http.address=0.0.0.0", "at '/config/http/address'"),
    ("config.election.drain=20", 'config.election.drain: "20" is not a duration'),
    ("config.electoin.drain=20s", "at '/config': additional properties 'electoin' not allowed"),
    ("sidecar.mode=both", "at '/sidecar/mode': value must be one of 'native', 'classic'"),
    ("sidecar.shutdownMarginSeconds=0", "at '/sidecar/shutdownMarginSeconds'"),
    ("example.replicas=two", "at '/example/replicas': got string, want integer"),
    ("image.digest=latest", "at '/image/digest': 'latest' does not match"),
    ("nonsense=1", "additional properties 'nonsense' not allowed"),
)

Resource = dict[str, Any]


class Refused(Exception):
    """Helm would not render; its message."""


class _Readable(yaml.SafeDumper):
    """Writes texts of several lines as blocks, so that a diff of snapshots can be read."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        style = "|" if "\n" in data else None
        return self.represent_scalar("tag:yaml.org,2002:str", data, style)


_Readable.add_representer(str, _Readable.represent_str)


class Helm:
    """The helm program, on this chart or on one that depends on it."""

    def __init__(self, program: str) -> None:
        self._program = program

    def __call__(self, *arguments: str | Path) -> tuple[int, str, str]:
        command = [self._program, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout, done.stderr

    def template(
        self, chart: Path, *arguments: str | Path, kubernetes: str = "1.29.0"
    ) -> list[Resource]:
        code, output, errors = self(
            "template", "orders", chart, "--namespace=shop", f"--kube-version={kubernetes}",
            *arguments,
        )  # fmt: skip
        if code != 0:
            raise Refused(errors.strip())
        return [resource for resource in yaml.safe_load_all(output) if resource]


def lint(helm: Helm) -> Iterator[str]:
    for name in SETS:
        arguments = ("lint", "--strict", "--kube-version=1.29.0", "--values", _values(name), CHART)
        code, output, errors = helm(*arguments)
        if code != 0:
            yield f"lint {name}: {output}{errors}"


def snapshot(name: str, resources: Sequence[Resource], *, update: bool) -> Iterator[str]:
    """Compared as YAML: comments and the order of keys are free."""
    path = TESTS / "snapshots" / f"{name}.yaml"
    # The order of helm's output is not promised to be the same in each of its versions.
    ordered = sorted(map(_without_files, resources), key=lambda one: (one["kind"], _name(one)))
    text = yaml.dump_all(ordered, Dumper=_Readable, sort_keys=True, width=1000)
    if update:
        path.write_text(text)
        return
    old = path.read_text() if path.exists() else ""
    yield from difflib.unified_diff(
        old.splitlines(), text.splitlines(), f"snapshot {name}", f"rendered {name}", "", "", 2, ""
    )


def _without_files(resource: Resource) -> Resource:
    """Rules and dashboard change on their own; `files` compares them with where they come from."""
    if resource["kind"] == "PrometheusRule":
        return {**resource, "spec": "files/alerts.yaml"}
    if _name(resource).endswith("-dashboard"):
        return {**resource, "data": "files/dashboard.json"}
    return resource


def files(resources: Sequence[Resource]) -> Iterator[str]:
    """Alerts and dashboard arrive as they are in the files."""
    rules = next(one for one in resources if one["kind"] == "PrometheusRule")
    if rules["spec"] != yaml.safe_load((CHART / "files/alerts.yaml").read_text()):
        yield "PrometheusRule: differs from files/alerts.yaml"
    board = next(one for one in resources if _name(one).endswith("-dashboard"))
    text = (CHART / "files/dashboard.json").read_text()
    if json.loads(board["data"]["baton.json"]) != json.loads(text):
        yield "dashboard: differs from files/dashboard.json"


def schemas(resources: Sequence[Resource]) -> Iterator[str]:
    for resource in resources:
        if resource["kind"] in CUSTOM:
            continue
        for version in KUBERNETES:
            try:
                kubernetes_validate.validate(resource, version, strict=True)
            except kubernetes_validate.ValidationError as error:
                place = ".".join(str(part) for part in error.path)
                yield f"{resource['kind']} ({version}): {place}: {error.message}"


def pods(resources: Sequence[Resource]) -> Iterator[str]:
    for resource in resources:
        if resource["kind"] in ("Deployment", "Job"):
            spec = resource["spec"]["template"]["spec"]
            for problem in (*_restricted(spec), *_wired(spec), *_sidecar(spec)):
                yield f"{resource['kind']} {_name(resource)}: {problem}"


def _restricted(spec: Resource) -> Iterator[str]:
    """Pod Security "restricted", a read-only root, and no token of the API server."""
    if spec.get("automountServiceAccountToken") is not False:
        yield "mounts a service account token"
    if spec["securityContext"].get("runAsNonRoot") is not True:
        yield "may run as root"
    for container in _containers(spec):
        context = container.get("securityContext", {})
        for key, wanted in RESTRICTED.items():
            if context.get(key) != wanted:
                yield f"{container['name']}: {key} is not {wanted}"
    for volume in spec["volumes"]:
        if not {"configMap", "emptyDir", "projected"} & set(volume):
            yield f"volume {volume['name']}: of a kind that is not restricted"


def _wired(spec: Resource) -> Iterator[str]:
    """Mounts have their volumes, volumes are mounted, and variables name files that are there."""
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    mounted = set()
    for container in _containers(spec):
        mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
        mounted |= set(mounts.values())
        for variable in container["env"]:
            if variable["name"].endswith("_FILE"):
                directory, _, file = variable["value"].rpartition("/")
                if file not in _projected(volumes[mounts[directory]]):
                    yield f"{container['name']}: {variable['name']} names a file that is not there"
    if mounted != set(volumes):
        yield f"mounts {sorted(mounted)}, has volumes {sorted(volumes)}"


def admission(program: str, resources: Sequence[Resource]) -> Iterator[str]:
    """As the API server judges pods in a namespace that enforces "restricted"."""
    owners = [one for one in resources if one["kind"] in ("Deployment", "Job")]
    for owner, verdict in zip(owners, _verdicts(program, owners), strict=True):
        if verdict:
            yield f"{owner['kind']} {_name(owner)}: {verdict}"


def judge(program: str, resources: Sequence[Resource]) -> Iterator[str]:
    """Each pod is refused once one of its restrictions is taken away, so that there is a judge."""
    owner = next(one for one in resources if one["kind"] == "Deployment")
    for name, wanted in (("allowPrivilegeEscalation", "allowPrivilegeEscalation != false"),
                         ("capabilities", "unrestricted capabilities")):  # fmt: skip
        changed = copy.deepcopy(owner)
        del _containers(changed["spec"]["template"]["spec"])[0]["securityContext"][name]
        (verdict,) = _verdicts(program, [changed])
        if not verdict.startswith('violates PodSecurity "restricted:') or wanted not in verdict:
            yield f"without {name}: is admitted ({verdict})"


def _verdicts(program: str, owners: Sequence[Resource]) -> list[str]:
    pods = json.dumps([owner["spec"]["template"] for owner in owners])
    done = subprocess.run([program], input=pods, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Refused(done.stderr)
    verdicts: list[str] = json.loads(done.stdout)
    return verdicts


def _sidecar(spec: Resource) -> Iterator[str]:
    found = [one for one in _containers(spec) if one["name"] == "baton"]
    for sidecar in found:
        native = sidecar in spec.get("initContainers", [])
        if (sidecar.get("restartPolicy") == "Always") != native:
            yield "baton: restartPolicy: Always is for native sidecars, and they need it"
        if sidecar["lifecycle"]["preStop"]["exec"]["command"] != ["baton", "drain", "--wait"]:
            yield "baton: does not drain"
        for probe, path in (
            ("startup", "startupz"),
            ("readiness", "readyz"),
            ("liveness", "livez"),
        ):
            if sidecar[f"{probe}Probe"]["httpGet"]["path"] != f"/{path}":
                yield f"baton: the {probe} probe asks for something else than /{path}"
        if "cpu" in sidecar["resources"]["limits"]:
            yield "baton: has a CPU limit"


def behaviour(helm: Helm) -> Iterator[str]:
    """What is computed, and what must not change with what."""
    for drain, margin, wanted in (("20s", 10, 30), ("1m30s", 10, 100), ("1500ms", 5, 7)):
        change = f"config.election.drain={drain},sidecar.shutdownMarginSeconds={margin}"
        spec = _deployment(_changed(helm, change))["template"]["spec"]
        if (found := spec["terminationGracePeriodSeconds"]) != wanted:
            yield f"drain {drain}, margin {margin}: grace period {found}, not {wanted}"
    before, after = (_changed(helm, f"config.config_revision={number}") for number in (7, 0))
    if _deployment(before) != _deployment(after):
        yield "a new revision alone restarts pods"
    if [_config(one)["config_revision"] for one in (before, after)] != [7, 0]:
        yield "config_revision is not what was given"
    if _deployment(_changed(helm, "config.log.level=debug")) == _deployment(before):
        yield "a changed configuration restarts no pod"


def refusals(helm: Helm) -> Iterator[str]:
    for change, wanted in REFUSALS:
        yield from _refused(partial(_changed, helm, change), change, wanted)
    old = partial(helm.template, CHART, "--values", _values("default"), kubernetes="1.28.0")
    yield from _refused(old, "Kubernetes 1.28", "native sidecars need Kubernetes 1.29")
    classic = ("--values", _values("classic"))
    helm.template(CHART, *classic, kubernetes="1.28.0")  # which must work


def _refused(render: Any, what: str, wanted: str) -> Iterator[str]:
    try:
        render()
    except Refused as error:
        if wanted not in str(error):
            yield f"{what}: refused, but not with {wanted!r}: {error}"
    else:
        yield f"{what}: is not refused"


def consumer(helm: Helm) -> list[Resource]:
    """The chart of a user's own that the guide shows, with this one as its dependency."""
    with tempfile.TemporaryDirectory() as directory:
        chart = Path(directory) / "orders"
        for block in blocks(GUIDE):
            if block.heading == "In your own chart" and block.file:
                (chart / block.file).parent.mkdir(parents=True, exist_ok=True)
                (chart / block.file).write_text(block.text)
        (Path(directory) / "baton").symlink_to(ROOT)  # where its Chart.yaml looks for this one
        code, output, errors = helm("dependency", "update", chart)
        if code != 0:
            raise Refused(f"helm dependency update: {output}{errors}")
        return helm.template(chart)


def installed(helm: Helm) -> list[Resource]:
    """What the command in the guide would install."""
    text = "".join(block.text for block in blocks(GUIDE) if block.language == "sh")
    found = re.search(
        r"^helm install orders helm/baton (.*?[^\\])$", text, re.DOTALL | re.MULTILINE
    )
    if not found:
        raise Refused(f"{GUIDE}: shows no helm install")
    return helm.template(CHART, *shlex.split(found[1].replace("\\\n", " ")))


def shown(page: str) -> list[Resource]:
    """The resources that a page spells out."""
    texts = [block.text for block in blocks(page) if "\nkind: Deployment" in block.text]
    whole = (text for text in texts if "{{" not in text)
    return [resource for text in whole for resource in yaml.safe_load_all(text)]


def _values(name: str) -> Path:
    return TESTS / "values" / f"{name}.yaml"


def _changed(helm: Helm, change: str) -> list[Resource]:
    return helm.template(CHART, "--values", _values("default"), "--set", change)


def _name(resource: Resource) -> str:
    return str(resource["metadata"]["name"])


def _deployment(resources: Sequence[Resource]) -> Resource:
    spec: Resource = next(one["spec"] for one in resources if one["kind"] == "Deployment")
    return spec


def _config(resources: Sequence[Resource]) -> Resource:
    text = next(one["data"]["baton.yaml"] for one in resources if one["kind"] == "ConfigMap")
    config: Resource = yaml.safe_load(text)
    return config


def _containers(spec: Resource) -> list[Resource]:
    return [*spec.get("initContainers", []), *spec["containers"]]


def _projected(volume: Resource) -> set[str]:
    sources = volume["projected"]["sources"]
    return {item["path"] for source in sources for item in source["secret"]["items"]}


def problems(helm: Helm, judging: str, *, update: bool) -> Iterator[str]:
    yield from lint(helm)
    rendered = {name: helm.template(CHART, "--values", _values(name)) for name in SETS}
    rendered["consumer"] = consumer(helm)
    for name, resources in rendered.items():
        yield from snapshot(name, resources, update=update)
        yield from (f"{name}: {problem}" for problem in pods(resources))
    rendered["helm install"] = installed(helm)
    for page in ("README.md", GUIDE):
        rendered[page] = shown(page)
    for name, resources in rendered.items():
        yield from (f"{name}: {problem}" for problem in schemas(resources))
        yield from (f"{name}: {problem}" for problem in admission(judging, resources))
    yield from judge(judging, rendered["default"])
    yield from files(rendered["everything"])
    yield from behaviour(helm)
    yield from refusals(helm)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("helm")
    parser.add_argument("admission")
    parser.add_argument("--update", action="store_true", help="write the snapshots anew")
    options = parser.parse_args()
    try:
        found = list(problems(Helm(options.helm), options.admission, update=options.update))
    except Refused as refused:
        found = [str(refused)]
    print(*found, sep="\n", end="\n" if found else "")
    print(f"helm/test: {len(SETS) + 1} renderings, {len(REFUSALS) + 1} refusals", end=": ")
    print("problems found" if found else "all good")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
