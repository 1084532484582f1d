"""One file and the environment become Settings, proven consistent; or every problem at once."""

from sidecar.config.declare import changed_keys
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
    Jobs,
    Log,
    Postgres,
    Redis,
    Runner,
    Settings,
    Tracing,
)

__all__ = [
    "Api",
    "App",
    "Breaker",
    "ConfigError",
    "Election",
    "Health",
    "History",
    "Http",
    "Jobs",
    "Log",
    "Postgres",
    "Problem",
    "Redis",
    "Runner",
    "SecretSource",
    "SecretUnreadable",
    "Settings",
    "Tracing",
    "changed_keys",
    "load",
]
