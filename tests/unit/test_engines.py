"""The Node versions that the TypeScript client names are those that all it installs can do with."""

import json
import re

import pytest

from tests.lab.pages import ROOT

CLIENT = ROOT / "clients" / "typescript"
Version = tuple[int, int, int]


def _version(text: str) -> Version:
    major, minor, patch = [*map(int, text.split(".")), 0, 0][:3]
    return major, minor, patch


def _satisfies(version: Version, wanted: str) -> bool:
    return any(_alternative(version, each.strip()) for each in wanted.split("||"))


def _alternative(version: Version, wanted: str) -> bool:
    if wanted == "*":
        return True
    operator, text = re.match(r"(>=|\^|)\s*([\d.]*\d)", wanted).groups()  # type: ignore[union-attr]
    least = _version(text)
    return version >= least and (operator == ">=" or version[0] == least[0])


@pytest.mark.parametrize("file", ["package.json", "package-lock.json"])
def test_npm_ci_gives_no_engine_warning(file: str) -> None:
    """For the oldest version of each line that the package itself allows."""
    lock = json.loads((CLIENT / "package-lock.json").read_text())["packages"]
    content = json.loads((CLIENT / file).read_text())
    own = content["engines"]["node"] if "engines" in content else lock[""]["engines"]["node"]
    oldest = [_version(re.sub(r"[^\d.]", "", each)) for each in own.split("||")]
    for name, package in lock.items():
        wanted = package.get("engines", {}).get("node", "*")
        for version in oldest:
            assert _satisfies(version, wanted), f"{name} wants {wanted}, not {version}"
