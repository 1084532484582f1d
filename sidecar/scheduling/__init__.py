"""Schedules: ticks for the leader, the catalogue for everybody, and the file that declares them."""

from sidecar.scheduling.catalogue import Schedules
from sidecar.scheduling.config_sync import ConfigSync
from sidecar.scheduling.ticker import Ticker

__all__ = ["ConfigSync", "Schedules", "Ticker"]
