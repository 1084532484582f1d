"""Declares a setting: default, kind and description in one place.

Guarantee: the loader, the environment and the reference all read these declarations, so they cannot
differ.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

from sidecar.config import kinds

REQUIRED: Any = dataclasses.MISSING


@dataclass(frozen=True, slots=True)
class Declaration:
    """One setting, except its name and default."""

    form: Literal["scalar", "words", "numbers", "json", "section", "entries"]
    doc: str
    kind: kinds.Kind | None = None
    section: type[Any] | None = None


def _declared(default: Any, declaration: Declaration, *, show: bool = True) -> Any:
    metadata = {"declaration": declaration}
    if default is REQUIRED:
        return dataclasses.field(metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata, repr=show)


def scalar(default: Any, kind: kinds.Kind, doc: str, *, show: bool = True) -> Any:
    return _declared(default, Declaration("scalar", doc, kind=kind), show=show)


def words(default: tuple[str, ...], kind: kinds.Kind, doc: str) -> Any:
    return _declared(default, Declaration("words", doc, kind=kind))


def numbers(default: tuple[int, ...], kind: kinds.Kind, doc: str) -> Any:
    """A list whose items may repeat."""
    return _declared(default, Declaration("numbers", doc, kind=kind))


def section(section: type[Any], doc: str) -> Any:
    declaration = Declaration("section", doc, section=section)
    return dataclasses.field(default_factory=section, metadata={"declaration": declaration})


def entries(section: type[Any], doc: str) -> Any:
    return _declared((), Declaration("entries", doc, section=section))


Declared = tuple[str, "dataclasses.Field[Any]", Declaration]
_known: dict[type[Any], tuple[Declared, ...]] = {}  # a cache: there may be ten thousand schedules


def describe(section: type[Any], **settings: Declaration) -> None:
    """Declare every field of a type of the model: it has the defaults, and knows no file."""
    fields = {field.name: field for field in dataclasses.fields(section)}
    if fields.keys() != settings.keys():
        raise TypeError(f"{section.__name__}: {sorted(fields.keys() ^ settings.keys())}")
    _known[section] = tuple(
        (_key(name, settings[name]), field, settings[name]) for name, field in fields.items()
    )


def declarations(section: type[Any]) -> tuple[Declared, ...]:
    """Key, field and declaration of each setting of a section, in order."""
    if section not in _known:
        _known[section] = tuple(
            (_key(field.name, declaration), field, declaration)
            for field in dataclasses.fields(section)
            if (declaration := field.metadata.get("declaration"))
        )
    return _known[section]


def changed_keys(old: Any, new: Any) -> list[str]:
    """The dotted keys in which two values of one section differ; a list of entries is one key."""
    changed: list[str] = []
    for key, field, declaration in declarations(type(old)):
        before, after = getattr(old, field.name), getattr(new, field.name)
        if declaration.form == "section":
            changed += [f"{key}.{inner}" for inner in changed_keys(before, after)]
        elif before != after:
            changed.append(key)
    return changed


def _key(name: str, declaration: Declaration) -> str:
    if isinstance(declaration.kind, kinds.SecretFile):
        return f"{name}_file"
    return name.removesuffix("_seconds")
