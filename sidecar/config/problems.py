"""The problems of a configuration, one line each.

Guarantee: a problem fits on one line and contains no secret: values are only shown through `shown`,
and never for settings that may be secret.
"""

import re
from dataclasses import dataclass

ENVIRONMENT = "environment"
_SHOWN_MAX = 60
_PASSWORD = re.compile(r"\b(password\s*=\s*)('(?:[^'\\]|\\.)*'?|\S+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Problem:
    """`line` is 0 where there is none: in the environment, or when a file cannot be read."""

    file: str
    line: int
    key: str
    problem: str
    allowed: str

    def __str__(self) -> str:
        text = f"{self.file}:{self.line}: {self.key}: {self.problem}; {self.allowed}"
        return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


class ConfigError(Exception):
    """The configuration cannot be used; `problems` holds every reason, in the order of the file."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


class InvalidValue(ValueError):
    """One value is not allowed; the loader adds its place and makes a Problem."""

    def __init__(self, problem: str, allowed: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.allowed = allowed


def shown(value: str) -> str:
    """The value for a message: quoted, truncated, without the password of a URL or conninfo."""
    scheme, _, rest = value.partition("://")
    if "@" in rest:
        value = f"{scheme}://***@{rest.rpartition('@')[2]}"
    value = _PASSWORD.sub(r"\g<1>***", value)
    text = value if len(value) <= _SHOWN_MAX else value[:_SHOWN_MAX] + "…"
    return f'"{text}"'
