"""Every bad configuration of the catalogue gives exactly the lines that it should."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sidecar.cli import check
from sidecar.config import ConfigError, load

SECRET = "hunter2"
NAME = "1 to 255 of the characters A-Z a-z 0-9 . _ -, the first a letter or a digit"


@dataclass
class Case:
    name: str
    content: str = ""
    environ: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)


def catalogue() -> Iterator[Case]:
    text = Path(__file__).with_name("config_catalogue.txt").read_text()
    for block in text.split("\n=== ")[1:]:
        name, *lines = block.rstrip("\n").split("\n")
        case = Case(name)
        for line in lines:
            if line.startswith("=> "):
                case.lines.append(line[3:])
            elif line.startswith("$ "):
                variable, _, value = line[2:].partition("=")
                case.environ[variable] = value
            else:
                case.content += line + "\n"
        yield case


CASES = list(catalogue())


def test_the_catalogue_is_complete() -> None:
    assert len(CASES) >= 120
    assert all(case.lines for case in CASES)
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path("F")


def problems(environ: dict[str, str]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load("F", environ, need_postgres=False)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_problem_is_one_exact_line(case: Case, file: Path) -> None:
    """G11: names the place, the key, the problem and what is allowed. G12: never a secret."""
    file.write_text(case.content)
    found = problems(case.environ)
    assert found == case.lines
    assert SECRET not in "".join(found)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", "F:1: (file): is empty; a mapping that names at least the cluster"),
        (b"cluster: a\napp: {name: '\x07'}", "F:2: (file): holds a control character; printable"),
        (b"cluster: a\x00b", "F:1: (file): holds a control character; printable characters"),
        (b"cluster: a\nlog: \xff", "F:2: (file): is not UTF-8; a text in UTF-8"),
        ("cluster: a".encode("utf-16"), "F:1: (file): is not UTF-8; a text in UTF-8"),
        (b"#" * (2**20 + 1), "F:1: (file): is too large; at most 1 MiB"),
        (b"app: " + b"[" * 40 + b"]" * 40, f"F:1: app{'[0]' * 32}: is nested too deeply; at most"),
        (b"[" * 2**19, f"F:1: {'[0]' * 33}: is nested too deeply; at most 32 levels"),
        (b"cluster: " + b"a" * 256, f'F:1: cluster: "{"a" * 60}…" is not a name; {NAME}'),
        (
            b"cluster: a\nconfig_revision: " + b"9" * 5000,
            f'F:2: config_revision: "{"9" * 60}…" is not a whole number; a whole number from 0',
        ),
        (
            b"cluster: a\napp: {address: unix:///" + b"a" * 120 + b"}",
            f'F:2: app.address: "unix:///{"a" * 52}…" has a path of more than 107 bytes; ',
        ),
        (
            b"cluster: a\ngroups: [" + b", ".join(b"g%d" % n for n in range(65)) + b"]",
            "F:2: groups: names 65 groups; 1 to 64 groups",
        ),
        (
            b"cluster: a\nschedules: [{name: b, every: 1s, payload: " + b"x" * 262145 + b"}]",
            "F:2: schedules[0].payload: has 262145 bytes; text of at most 256 KiB",
        ),
    ],
)
def test_odd_bytes_and_large_values(content: bytes, line: str, file: Path) -> None:
    """G11: nothing that a file can hold does more than give a clear line."""
    file.write_bytes(content)
    (found,) = problems({})
    assert found.startswith(line)


def test_a_file_that_cannot_be_read(file: Path) -> None:
    found = problems({})
    assert found == ["F:0: (file): cannot be read: No such file or directory; a readable file"]


class TestCheck:
    def test_silence_for_a_good_file(
        self, file: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("BATON_POSTGRES_URL", raising=False)
        file.write_text("cluster: orders\n")
        assert check.run("F") == 0
        assert capfd.readouterr() == ("", "")

    def test_one_line_per_problem_and_nothing_else(
        self, file: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("BATON_LOG_FORMAT", "xml")
        file.write_text("cluster: orders\nlog: {level: loud}\n")
        assert check.run("F") == 2
        out, err = capfd.readouterr()
        assert out.splitlines() == [
            'F:2: log.level: "loud" is not known; one of debug, info, warning, error',
            'environment:0: BATON_LOG_FORMAT: "xml" is not known; one of json, console',
        ]
        assert err == ""

    def test_the_file_may_come_from_the_environment(
        self, file: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("BATON_CONFIG", "F")
        file.write_text("cluster: no\n")
        assert check.run(None) == 2
        assert capfd.readouterr().out.startswith("F:1: cluster: is a boolean to YAML, not text; ")
