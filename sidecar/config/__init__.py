"""One file and the environment become Settings, proven consistent; or every problem at once."""

from sidecar.config.loader import load
from sidecar.config.problems import ConfigError, Problem
from sidecar.config.secret import SecretSource, SecretUnreadable
from sidecar.config.settings import (
    Api,
    App,
    Breaker,
    Election,
    Health,
    History,
    Http,
    Log,
    Postgres,
    Redis,
    Runner,
    Settings,
    Tracing,
)
from sidecar.config.work import Retry, Schedule, Singleton, State

__all__ = [
    "Api",
    "App",
    "Breaker",
    "ConfigError",
    "Election",
    "Health",
    "History",
    "Http",
    "Log",
    "Postgres",
    "Problem",
    "Redis",
    "Retry",
    "Runner",
    "Schedule",
    "SecretSource",
    "SecretUnreadable",
    "Settings",
    "Singleton",
    "State",
    "Tracing",
    "load",
]
