"""Asks whether anything that the locks pin has a known vulnerability, and says what is not known.

    python -m tests.security.audit PIP_AUDIT LOCK…

    0  every package was looked up, and none has a known vulnerability
    1  some have: each is named with the version that heals it
    3  some could not be looked up, because no service answered: nothing is proven

pip-audit itself ends with 0 where the index has no such interface; that is why it is judged here.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

SOUND, VULNERABLE, UNKNOWN = 0, 1, 3
SERVICES = ("pypi", "osv")
_SECONDS = 300
_OPTIONS = ("--format=json", "--progress-spinner=off", "--require-hashes", "--disable-pip")


@dataclass(slots=True)
class Findings:
    asked: int = 0
    vulnerable: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    @property
    def code(self) -> int:
        if self.vulnerable:
            return VULNERABLE
        return UNKNOWN if self.unknown or not self.asked else SOUND


def findings(dependencies: Iterable[dict[str, Any]]) -> Findings:
    """What a report of pip-audit proves."""
    found = Findings()
    for dependency in dependencies:
        found.asked += 1
        name = dependency["name"]
        if "skip_reason" in dependency:
            found.unknown.append(name)
        for known in dependency.get("vulns", ()):
            healed = ", ".join(known["fix_versions"]) or "no release yet"
            found.vulnerable.append(
                f"{name} {dependency['version']}: {known['id']}; healed in {healed}"
            )
    return found


def audited(pip_audit: str, lock: str) -> Findings:
    """The findings of the first service that knows the packages."""
    found = Findings()
    for service in SERVICES:
        asked = (f"--vulnerability-service={service}", f"--requirement={lock}")
        command = [pip_audit, *_OPTIONS, *asked]
        try:
            ended = subprocess.run(
                command, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
            found = findings(json.loads(ended.stdout)["dependencies"])
        except (subprocess.TimeoutExpired, ValueError, KeyError):
            continue  # it broke on a service that does not answer
        if found.code != UNKNOWN:
            break
    return found


def main(arguments: Sequence[str]) -> int:
    pip_audit, *locks = arguments
    codes = set()
    for lock in locks:
        found = audited(pip_audit, lock)
        codes.add(found.code)
        for line in found.vulnerable:
            print(f"{lock}: {line}")
        if found.code == UNKNOWN:
            services = " nor ".join(SERVICES)
            asked = f"{len(found.unknown) or 'any'} of {found.asked} packages"
            print(f"{lock}: NOT AUDITED: neither {services} could be asked about {asked}")
        elif found.code == SOUND:
            print(f"{lock}: {found.asked} packages, no known vulnerability")
    return next(code for code in (VULNERABLE, UNKNOWN, SOUND) if code in codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
