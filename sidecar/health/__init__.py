"""Health: named checks beside the requests, a dead man's switch, and what the probes answer."""

from sidecar.health.checks import Check, CheckResult, Checks
from sidecar.health.readiness import Health
from sidecar.health.switch import DeadMansSwitch, VitalsStore

__all__ = ["Check", "CheckResult", "Checks", "DeadMansSwitch", "Health", "VitalsStore"]
