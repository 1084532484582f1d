"""What is written is true: the reference is fresh, examples are valid, names exist, links work.

What a page shows as a command or a program is run: `_PROOFS` says by which test. A block that is in
none of them fails, so that nothing can be shown that nobody tries.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from sidecar import cli, metrics
from sidecar.config import load
from sidecar.config.declare import declarations
from sidecar.config.reference import markdown
from sidecar.config.settings import Settings
from tests.lab import proofs
from tests.lab.pages import ROOT, blocks

GUIDE = "docs/operations.md"
PAGES = ["README.md", "CONTRIBUTING.md", "SECURITY.md"]
PAGES += [str(page.relative_to(ROOT)) for page in sorted((ROOT / "docs").rglob("*.md"))]
PAGES += [str(page.relative_to(ROOT)) for page in sorted((ROOT / "clients").glob("*/README.md"))]
# By page, then language of the block: the file and the test in it that runs such blocks.
_README = "tests/acceptance/test_readme.py"
_JOBS = "tests/integration/test_jobs_page.py"
_CLIENT = (_README, "test_the_program_of_a_client_page_conforms")
_PROOFS = {
    "README.md": dict.fromkeys(
        ("sh", "python", "ts", "go", "java", "yaml"), (_README, "test_ten_minutes_to_production")
    ),
    "docs/conformance.md": {
        "console": ("tests/acceptance/test_conformance.py", "test_the_page_shows_what_is_printed")
    },
    "docs/jobs.md": {
        "sh": (_JOBS, "test_the_commands_of_the_page_work"),
        "sql": (_JOBS, "test_the_sql_of_the_page_works"),
        "yaml": (_JOBS, "test_the_configuration_of_the_page_is_valid"),
    },
    "docs/kubernetes.md": {
        "sh": ("helm/baton/tests/verify.py", "installed"),
        "yaml": ("helm/baton/tests/verify.py", "consumer"),
    },
    "docs/operations.md": {
        "yaml": ("tests/unit/test_docs.py", "test_configurations_in_the_guide_are_valid")
    },
    "docs/security.md": {
        "sql": (
            "tests/security/test_least_role.py",
            "test_all_of_it_works_with_the_documented_grants",
        )
    },
    "clients/python/README.md": {
        "python": ("clients/python/tests/test_readme.py", "test_the_shown_test_passes")
    },
    "clients/typescript/README.md": {"ts": _CLIENT},
    "clients/go/README.md": {"go": _CLIENT},
    "clients/java/README.md": {
        "java": _CLIENT,
        "xml": ("tests/unit/test_docs.py", "test_the_dependency_in_the_java_page_is_this_one"),
    },
    "clients/rust/README.md": {"console": (_README, "test_the_commands_of_the_rust_page_work")},
}


def _file(name: str) -> str:
    """The text that the README wants saved under that name."""
    (block,) = (block for block in blocks("README.md") if block.file == name)
    return block.text


def _text(page: str) -> str:
    """Without its blocks."""
    return re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(), flags=re.DOTALL | re.MULTILINE)


def _inline(page: str) -> list[str]:
    """What stands in `…` outside of blocks."""
    return re.findall(r"`([^`\n]+)`", _text(page))


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "bench" not in page and "fault" not in page]
)
def test_everything_shown_is_run_by_a_test(page: str) -> None:
    for block in blocks(page):
        if not block.prose:
            assert block.language in _PROOFS.get(page, {}), f"{block}: nobody runs it"
    for file, test in _PROOFS.get(page, {}).values():
        assert proofs.reads(file, test, page), f"{page}: not read by {test} in {file}"


@pytest.mark.parametrize(
    ("file", "test", "page"),
    [
        (_README, "test_nobody_wrote", "README.md"),
        (_README, "test_ten_minutes_to_production", "clients/rust/README.md"),
        (_README, "test_the_commands_of_the_rust_page_work", "docs/security.md"),
        ("tests/unit/test_docs.py", "test_configurations_in_the_guide_are_valid", "README.md"),
        # Its docstring names the page, its code does not.
        ("tests/security/test_least_role.py", "_run_and_schedule", "docs/security.md"),
    ],
)
def test_a_proof_that_is_none_is_found(file: str, test: str, page: str) -> None:
    assert not proofs.reads(file, test, page)


def test_the_configuration_reference_is_what_the_code_says() -> None:
    assert (ROOT / "docs" / "configuration.md").read_text() == markdown(), "run `make generate`"


def test_the_configuration_in_the_readme_is_valid(tmp_path: Path) -> None:
    file = tmp_path / "baton.yaml"
    file.write_text(_file("baton.yaml"))
    settings = load(file, {}, need_postgres=False)
    assert settings.cluster == "orders"
    programs = [block for block in blocks("README.md") if block.fold and block.file]
    names = [one.name for one in settings.schedules] + [one.name for one in settings.singletons]
    for name in names:
        assert all(f'"{name}"' in program.text for program in programs), name
    assert len(programs) == 4


def test_configurations_in_the_guide_are_valid(tmp_path: Path) -> None:
    shown = [block for block in blocks(GUIDE) if block.file == "baton.yaml"]
    assert shown
    for block in shown:
        (tmp_path / "baton.yaml").write_text(block.text)
        assert load(tmp_path / "baton.yaml", {}).postgres.direct_url


def _container(pod: dict[str, Any], name: str) -> dict[str, Any]:
    spec = pod["spec"]["template"]["spec"]
    found = [one for one in (*spec["initContainers"], *spec["containers"]) if one["name"] == name]
    assert len(found) == 1
    return dict(found[0])


def _guide_container() -> dict[str, Any]:
    whole = (block.text for block in blocks("docs/kubernetes.md") if "kind: Job" in block.text)
    resources = yaml.safe_load_all(next(whole))
    return _container(next(one for one in resources if one["kind"] == "Deployment"), "baton")


def test_the_pod_in_the_readme_is_the_one_of_the_guide_in_short() -> None:
    """Its schema and its admission are judged by helm/test."""
    mine, guide = _container(yaml.safe_load(_file("deployment.yaml")), "baton"), _guide_container()
    for key in ("ports", "restartPolicy", "lifecycle", "resources"):
        assert mine[key] == guide[key], key
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert mine[probe]["httpGet"] == guide[probe]["httpGet"]
    settings = {key.replace(".", "_").upper() for key in _keys()} | {"CONFIG"}
    for variable in mine["env"]:
        assert variable["name"].removeprefix("BATON_").removesuffix("_FILE") in settings


def test_the_commands_for_kubernetes_make_what_the_pod_in_the_readme_needs() -> None:
    text = "".join(block.text for block in blocks("README.md") if block.language == "sh")
    deployment = yaml.safe_load(_file("deployment.yaml"))
    pod, sidecar = deployment["spec"]["template"]["spec"], _container(deployment, "baton")
    config, secret = pod["volumes"]
    assert f"kubectl create configmap {config['configMap']['name']} --from-file=baton.yaml" in text
    url = {variable["name"]: variable["value"] for variable in sidecar["env"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in sidecar["volumeMounts"]}
    assert url["BATON_CONFIG"] == f"{mounts[config['name']]}/baton.yaml"
    folder, _, key = url["BATON_POSTGRES_URL_FILE"].rpartition("/")
    assert folder == mounts[secret["name"]]
    create = f"kubectl create secret generic {secret['secret']['secretName']} --from-file={key}="
    assert create in text
    assert f"docker build -t {sidecar['image']} $BATON\n" in text
    assert f"kubectl exec deploy/{deployment['metadata']['name']} -c {sidecar['name']} --" in text


def test_the_scrape_in_the_readme_finds_the_port_of_the_pod(tmp_path: Path) -> None:
    scrape = yaml.safe_load(_file("prometheus.yml"))
    (rule,) = scrape["scrape_configs"][0]["relabel_configs"]
    (port,) = _container(yaml.safe_load(_file("deployment.yaml")), "baton")["ports"]
    assert rule["regex"] == port["name"]
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed: apt-get install prometheus")
    # Debian's promtool is built without Kubernetes.
    scrape["scrape_configs"][0].pop("kubernetes_sd_configs")
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(scrape))
    command = [promtool, "check", "config", "--syntax-only", str(tmp_path / "prometheus.yml")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_the_dependency_in_the_java_page_is_this_one() -> None:
    (shown,) = (block for block in blocks("clients/java/README.md") if block.language == "xml")
    pom = (ROOT / "clients/java/pom.xml").read_text()
    for tag in ("groupId", "artifactId", "version"):
        line = re.search(rf"<{tag}>(.*?)</{tag}>", shown.text)
        assert line
        assert re.search(rf"^  <{tag}>{re.escape(line[1])}</{tag}>$", pom, re.MULTILINE), tag


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    links = re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", re.sub(r"`[^`\n]+`", "", _text(page)))
    missing = [link for link in links if not ((ROOT / page).parent / link).exists()]
    assert not missing


def _keys() -> set[str]:
    """Every key of a scalar: `cluster`, `election.lease`."""
    keys = set()
    for key, _, declaration in declarations(Settings):
        inner = declarations(declaration.section) if declaration.section is not None else ()
        keys |= {f"{key}.{name}" for name, _, _ in inner} or {key}
    return keys


@cache
def _tasks() -> set[str]:
    """Names of tasks look like settings: `health.observe`."""
    source = "".join(file.read_text() for file in (ROOT / "sidecar").rglob("*.py"))
    return set(re.findall(r'\bname="([a-z_.]+)"', source)) - _keys()


@pytest.mark.parametrize("page", [page for page in PAGES if not page.startswith("clients")])
def test_settings_that_are_named_exist(page: str) -> None:
    keys = _keys()
    sections = {key.partition(".")[0] for key in keys if "." in key}
    for word in _inline(page):
        section = word.partition(".")[0]
        if re.fullmatch(r"[a-z_]+\.(?!py$)[a-z_]+", word) and section in sections - {"state"}:
            assert word in keys | _tasks(), f"{page}: {word} is no setting"


def _metric(word: str) -> str:
    name = re.match(r"(?:baton|singleton)_[a-z_]+(?=$|\{)", word)
    return name[0] if name else ""


@pytest.mark.parametrize("page", PAGES)
def test_metrics_that_are_named_exist(page: str) -> None:
    known = Path(metrics.__file__).parent.glob("*.py")
    declared = "".join(file.read_text() for file in known)
    for name in filter(None, map(_metric, _inline(page))):
        base = name.removesuffix("_total")
        assert f'"{base}"' in declared or f'"{name}"' in declared, f"{page}: {name} is no metric"


@pytest.mark.parametrize("page", PAGES)
def test_commands_that_are_named_are_understood(page: str) -> None:
    """Placeholders are words in capitals, which are good arguments too; a bare name may be one."""
    for word in _inline(page):
        if not re.match(r"baton [a-z]", word) or "…" in word:
            continue
        arguments = shlex.split(word)[1:]
        if len(arguments) == 1:
            with pytest.raises(SystemExit, match=r"^0$"):
                cli._parser().parse_args([*arguments, "--help"])
        else:
            assert cli._parser().parse_args(arguments), f"{page}: {word}"


def test_events_in_the_guide_to_troubles_are_logged() -> None:
    """Words with an underscore name an event of the log, if they are no setting and no metric."""
    source = "".join(file.read_text() for file in (ROOT / "sidecar").rglob("*.py"))
    words = {word for word in _inline(GUIDE) if re.fullmatch(r"[a-z]+(_[a-z]+)+", word)}
    events = {word for word in words if not _metric(word)} - _fields() - {"max_connections"}
    assert len(events) > 5
    assert not {event for event in events if f'"{event}"' not in source}


def _fields() -> set[str]:
    return {key.rpartition(".")[2] for key in _keys()}


def test_what_every_client_does_is_tested_in_each() -> None:
    """The table of docs/clients.md: four tests per line, each defined under its name."""
    lines = (ROOT / "docs/clients.md").read_text().splitlines()
    header, _, *rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("|")]
    assert len(rows) > 20
    for what, *tests in rows:
        assert len(tests) == 4, what
        for language, proof in zip(header, tests, strict=True):
            for name in re.findall(r"`([^`]+)`", proof):
                assert _defined(name, _tests(language.lower())), f"{what}, {language}: {name}"


def test_a_name_in_other_words_is_no_test() -> None:
    text = 'def test_a(): ...\n# test_b\nfunc TestC(t\n  test("d: e", () =>\n  void f() {\n'
    assert [_defined(n, text) for n in ("test_a", "TestC", "d: e", "f")] == [True] * 4
    assert not any(_defined(n, text) for n in ("test_", "test_b", "TestD", "d", "e", "TestC(t"))


def _defined(name: str, text: str) -> bool:
    """As a function of Python, Go or Java, or as the title of a test of TypeScript."""
    word = re.escape(name)
    title = rf"""(?:test|it)\(\s*["'`]{word}["'`]"""
    return bool(re.search(rf"\b(?:def|func|void) {word}\(|{title}", text))


@cache
def _tests(language: str) -> str:
    suffixes = {".py", ".ts", ".go", ".java"}
    home = ROOT / "clients" / language
    folders = [home / "tests", home / "src/test", *home.glob("*_test.go"), ROOT / "tests"]
    files = [folder for folder in folders if folder.is_file()]
    files += [file for folder in folders for file in folder.rglob("*") if file.suffix in suffixes]
    return "".join(file.read_text() for file in files if file.name != "test_docs.py")


def test_every_make_target_in_the_readme_exists() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = set(re.findall(r"(?:^|`)make ([a-z]+)", (ROOT / "README.md").read_text(), re.MULTILINE))
    assert named
    assert named <= set(targets)


@pytest.mark.parametrize("page", PAGES)
def test_commands_can_be_pasted_into_any_shell(page: str) -> None:
    """zsh, unless told otherwise, takes a comment on a line that is typed for arguments."""
    for block in blocks(page):
        if block.language in ("sh", "console") and not block.file:
            for line in block.text.splitlines():
                assert not re.search(r"(^|\s)#", line), f"{block}: {line}"


def test_the_contract_needs_no_other_includes_than_the_page_names() -> None:
    """`-I proto` and the well-known types; of googleapis nothing."""
    page = (ROOT / "docs" / "conformance.md").read_text()
    for name in ("-I proto", "libprotobuf-dev", "google/protobuf/duration.proto", "googleapis"):
        assert name in page
    for file in (ROOT / "proto" / "baton" / "v1").glob("*.proto"):
        for imported in re.findall(r'^import "(.*)";$', file.read_text(), re.MULTILINE):
            known = ("google/protobuf/duration.proto", "google/protobuf/timestamp.proto")
            assert imported.startswith("baton/v1/") or imported in known, f"{file}: {imported}"


def test_the_contract_says_of_lost_terms_what_conformance_checks() -> None:
    """Its first lines once told apps that they need no more than Execute."""
    header = (ROOT / "proto/baton/v1/callback.proto").read_text().partition("syntax =")[0]
    assert "implements Execute only" not in header
    assert "refuses the late Execute of a term that it has lost" in header
