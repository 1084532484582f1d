"""Schedules: ticks of the leader, the catalogue of every pod, the sync of the config file."""

from sidecar.scheduling.catalogue import Schedules
from sidecar.scheduling.config_sync import ConfigSync
from sidecar.scheduling.ticker import Ticker

__all__ = ["ConfigSync", "Schedules", "Ticker"]
