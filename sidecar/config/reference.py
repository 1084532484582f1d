"""Generates the configuration reference from the declarations."""

from dataclasses import MISSING, Field
from typing import Any

from sidecar.config import environment, kinds
from sidecar.config.declare import Declaration, declarations
from sidecar.config.secret import SecretSource
from sidecar.config.settings import Settings
from sidecar.model.duration import format_duration

_HEAD = """# Configuration reference

Settings come from one YAML file. The environment variable in a row overrides the file. A secret
can also come from a file whose path is in the variable with the suffix `_FILE`; it is read again at
each connect. Lists in the environment are separated by commas. `baton check` reports all problems.
"""
_ENVIRONMENT_HEAD = "\n## Variables\n\n"


def markdown() -> str:
    """The whole reference as one Markdown page."""
    top = [row for row in declarations(Settings) if row[2].section is None]
    parts = [_HEAD, "\n## Top level\n\n", _table(top, "")]
    parts += [
        _section(key, declaration)
        for key, _, declaration in declarations(Settings)
        if declaration.section is not None
    ]
    return "".join(parts) + _ENVIRONMENT_HEAD + (environment.__doc__ or "").strip() + "\n"


def _section(key: str, declaration: Declaration) -> str:
    place = f"{key}[]" if declaration.form == "entries" else key
    return f"\n## `{place}`\n\n{declaration.doc}\n\n" + _tables(declaration.section, place)


def _tables(section: Any, place: str) -> str:
    """The table of a section, and those of the sections in it."""
    text = _table([row for row in declarations(section) if row[2].section is None], place)
    for inner, _, declaration in declarations(section):
        if declaration.section is not None:
            inner_place = f"{place}.{inner}" + ("[]" if declaration.form == "entries" else "")
            text += f"\n{declaration.doc}\n\n" + _tables(declaration.section, inner_place)
    return text


def _table(rows: list[tuple[str, "Field[Any]", Declaration]], prefix: str) -> str:
    variables = {key: variable for variable, key, _ in environment.variables()}
    lines = ["| key | default | allowed | meaning |", "|---|---|---|---|"]
    for key, field, declaration in rows:
        place = f"{prefix}.{key}" if prefix else key
        shown_key = f"`{place}`"
        if variable := variables.get(place):
            files = " or `…_FILE`" if environment.takes_file(declaration) else ""
            shown_key += f"<br>`{variable}`{files}"
        cells = (shown_key, _default(field, declaration), _allowed(declaration), declaration.doc)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _default(field: "Field[Any]", declaration: Declaration) -> str:
    if field.default is MISSING and field.default_factory is MISSING:
        return "none, required"
    if declaration.form == "json":
        return "`{}`"
    return f"`{_written(field.default, declaration)}`"


def _written(value: Any, declaration: Declaration) -> str:
    """The default as written in the file."""
    if value is None:
        return "null"
    if isinstance(declaration.kind, kinds.Duration):
        return format_duration(value)
    if isinstance(declaration.kind, kinds.Percent | kinds.Rate):
        return declaration.kind.written(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[" + ", ".join(str(item) for item in value) + "]"
    if isinstance(value, SecretSource | bytes) or value == "":
        return '""'
    return str(value)


def _allowed(declaration: Declaration) -> str:
    if declaration.kind is None:
        return "any JSON value" if declaration.form == "json" else ""
    return declaration.kind.allowed
