"""Checks of single texts, shared by the declarations.

Each returns the text or raises ValueError with a message.
"""

import re

from sidecar.config.problems import shown
from sidecar.model.zones import ZoneError, load_zone


def postgres_schema(text: str) -> str:
    """A name that needs no quotes in SQL; Postgres reserves `pg_`."""
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", text) or text.startswith("pg_"):
        raise ValueError(f"{shown(text)} is not a schema name")
    return text


def time_zone(text: str) -> str:
    try:
        load_zone(text)
    except ZoneError:
        raise ValueError(f"{shown(text)} is not a time zone") from None
    return text


def media_type(text: str) -> str:
    if not re.fullmatch(r"[\w.+-]{1,100}/[\w.+-]{1,100}( *; *[\w.+-]+=[\w.+-]+)*", text, re.ASCII):
        raise ValueError(f"{shown(text)} is not a media type")
    return text
