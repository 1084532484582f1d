"""Executes runs: claims them, calls the app, records what became of them."""

from sidecar.dispatch.dispatcher import Dispatcher, Tools
from sidecar.dispatch.runs import Runs
from sidecar.dispatch.slots import Slots

__all__ = ["Dispatcher", "Runs", "Slots", "Tools"]
