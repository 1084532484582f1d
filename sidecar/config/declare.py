"""How a setting is declared: default, kind and sentence in one place.

Guarantee: the loader, the environment and the reference all read these declarations, so a setting
is described once and can never differ between them.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

from sidecar.config import kinds

REQUIRED: Any = dataclasses.MISSING


@dataclass(frozen=True, slots=True)
class Declaration:
    """What the loader and the reference know of one setting, besides its name and default."""

    form: Literal["scalar", "words", "json", "section", "entries"]
    doc: str
    kind: kinds.Kind | None = None
    section: type[Any] | None = None


def _declared(default: Any, declaration: Declaration, *, show: bool = True) -> Any:
    metadata = {"declaration": declaration}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=dict, metadata=metadata)
    if default is REQUIRED:
        return dataclasses.field(metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata, repr=show)


def scalar(default: Any, kind: kinds.Kind, doc: str, *, show: bool = True) -> Any:
    return _declared(default, Declaration("scalar", doc, kind=kind), show=show)


def words(default: tuple[str, ...], kind: kinds.Kind, doc: str) -> Any:
    return _declared(default, Declaration("words", doc, kind=kind))


def json(doc: str) -> Any:
    return _declared({}, Declaration("json", doc))


def section(section: type[Any], doc: str) -> Any:
    declaration = Declaration("section", doc, section=section)
    return dataclasses.field(default_factory=section, metadata={"declaration": declaration})


def entries(section: type[Any], doc: str) -> Any:
    return _declared((), Declaration("entries", doc, section=section))


Declared = tuple[str, "dataclasses.Field[Any]", Declaration]
_known: dict[type[Any], tuple[Declared, ...]] = {}  # ten thousand schedules are read by the same


def declarations(section: type[Any]) -> tuple[Declared, ...]:
    """Key, field and declaration of each setting of a section, in order."""
    if section not in _known:
        _known[section] = tuple(
            (_key(field.name, declaration), field, declaration)
            for field in dataclasses.fields(section)
            if (declaration := field.metadata.get("declaration"))
        )
    return _known[section]


def _key(name: str, declaration: Declaration) -> str:
    if isinstance(declaration.kind, kinds.SecretFile):
        return f"{name}_file"
    return name.removesuffix("_seconds")
