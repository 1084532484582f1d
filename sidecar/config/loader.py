"""Loads Settings from file and environment.

Guarantee: either Settings that satisfy every declaration and every rule, or one ConfigError with
all problems. A value that is invalid by itself, or as YAML, is not reported again by the rules that
use it.
"""

import difflib
from collections.abc import Mapping
from dataclasses import MISSING, Field, replace
from pathlib import Path
from typing import Any

from sidecar.config import environment, kinds, rules, scalars, yaml_reader
from sidecar.config.declare import Declaration, declarations
from sidecar.config.files import FileUnreadable, read_file
from sidecar.config.problems import ENVIRONMENT, ConfigError, InvalidValue, Problem
from sidecar.config.settings import Settings
from sidecar.config.yaml_reader import Node, Scalar, Sequence, joined

_STAND_IN = "unnamed"  # for a required value that is missing: the problem has been noted


def load(
    path: Path | str | None, environ: Mapping[str, str], *, need_postgres: bool = True
) -> Settings:
    """Settings from the file (or the one that BATON_CONFIG names, or none) and the environment.

    Commands that work without the database, such as `check`, pass `need_postgres=False`.
    """
    chosen = environ.get(environment.CONFIG, "") if path is None else str(path)
    file = chosen or ENVIRONMENT
    tree, problems = _read_tree(chosen) if chosen else (yaml_reader.Mapping(0), [])
    build = _Build(file, environ, problems)
    settings: Settings = build.section(Settings, tree, "")
    warnings = build.unknown_variables(environ)
    build.apply(rules.violations(settings, need_postgres=need_postgres))
    if build.problems:
        raise ConfigError(sorted(build.problems, key=lambda p: (p.file == ENVIRONMENT, p.line)))
    return replace(settings, warnings=(*warnings, *rules.warnings(settings)))


def _read_tree(file: str) -> tuple[yaml_reader.Mapping, list[Problem]]:
    """What could be parsed, and its problems as YAML."""
    try:
        content = read_file(file, yaml_reader.BYTES_MAX)
    except FileUnreadable as error:
        raise ConfigError([Problem(file, 0, "(file)", str(error), "a readable file")]) from None
    tree, problems = yaml_reader.read(content, file)
    if tree is None:
        raise ConfigError(problems)
    return tree, problems


class _Build:
    """Walks declarations and tree together; remembers the place of each value."""

    def __init__(self, file: str, environ: Mapping[str, str], problems: list[Problem]) -> None:
        self._file = file
        self._given = environment.given(environ)
        self._places: dict[str, tuple[str, int, str]] = {}  # key -> file, line, key to show
        self._unread = {problem.key for problem in problems}  # the tree may lack what is there
        self._around_unread = {key[:end] for key in self._unread for end in _ends_above(key)}
        self._wrong = set(self._unread)
        self.problems = list(problems)

    def section(self, section: type[Any], tree: yaml_reader.Mapping, prefix: str) -> Any:
        values: dict[str, Any] = {}
        keys = []
        for key, field, declaration in declarations(section):
            keys.append(key)
            place = joined(prefix, key)
            try:
                self._field(values, field, declaration, place, tree.entries.get(key))
            except InvalidValue as invalid:
                self._wrong.add(place)
                if place not in self._unread:
                    self._note(place, invalid)
            if field.name not in values and field.default is field.default_factory is MISSING:
                values[field.name] = _STAND_IN
        self._unknown_keys(tree, prefix, keys)
        return section(**values)

    def _field(
        self,
        values: dict[str, Any],
        field: "Field[Any]",
        declaration: Declaration,
        place: str,
        entry: tuple[int, Node] | None,
    ) -> None:
        if entry is not None:
            self._places[place] = (self._file, entry[0], place)
        if declaration.form in ("words", "numbers", "json") and place in self._around_unread:
            self._unread.add(place)
            self._wrong.add(place)
        if place in self._given:
            values[field.name] = self._from_environment(place, declaration)
        elif entry is not None and not (field.default is None and scalars.is_null(entry[1])):
            values[field.name] = self._from_node(declaration, entry[1], place)
        elif declaration.form == "section":
            values[field.name] = self._from_node(declaration, yaml_reader.Mapping(0), place)
        elif field.default is field.default_factory is MISSING:
            self._places[place] = (self._file, self._line_above(place), place)
            if _above(place) in self._unread:
                self._wrong.add(place)
                return
            raise InvalidValue("is not set", _kind(declaration).allowed)

    def _line_above(self, place: str) -> int:
        """A missing key is reported where its section begins."""
        parent = place.rpartition(".")[0]
        return self._places[parent][1] if parent else int(self._file != ENVIRONMENT)

    def _from_environment(self, place: str, declaration: Declaration) -> Any:
        given = self._given[place]
        self._places[place] = (ENVIRONMENT, 0, given[0].variable)
        if len(given) > 1:
            raise InvalidValue(f"is set, and so is {given[1].variable}", "one of the two")
        kind, text = _kind(declaration), given[0].text
        if given[0].from_file and isinstance(kind, kinds.Secret):
            return kind.parse_file(text)
        if declaration.form in ("words", "numbers"):
            words = text.split(",") if text.strip() else []
            return _listed([kind.parse(word.strip()) for word in words], declaration)
        return kind.parse(text)

    def _from_node(self, declaration: Declaration, node: Node, place: str) -> Any:
        if declaration.form == "scalar":
            return _scalar(_kind(declaration), node)
        if declaration.form in ("words", "numbers"):
            kind = _kind(declaration)
            if not isinstance(node, Sequence):
                raise InvalidValue("is not a list", f"a list, each {kind.allowed}")
            return _listed([_scalar(kind, item) for item in node.items], declaration)
        if declaration.form == "json":
            return scalars.to_json(node)
        if declaration.form == "section":
            return self._subsection(declaration, node, place)
        return self._entries(declaration, node, place)

    def _subsection(self, declaration: Declaration, node: Node, place: str) -> Any:
        if declaration.section is None:
            raise TypeError(f"{place} declares no section")
        if scalars.is_null(node):  # `election:` with every key below it commented out
            node = yaml_reader.Mapping(node.line)
        if not isinstance(node, yaml_reader.Mapping):
            raise InvalidValue(
                "is not a mapping", "keys with values: " + _keys(declaration.section)
            )
        return self.section(declaration.section, node, place)

    def _entries(self, declaration: Declaration, node: Node, place: str) -> tuple[Any, ...]:
        if scalars.is_null(node):
            return ()
        if not isinstance(node, Sequence):
            raise InvalidValue("is not a list", "a list of entries that start with - name:")
        built = []
        for number, item in enumerate(node.items):
            inner = f"{place}[{number}]"
            self._places[inner] = (self._file, item.line, inner)
            try:
                built.append(self._subsection(declaration, item, inner))
            except InvalidValue as invalid:
                if inner not in self._unread:
                    self._note(inner, invalid)
                # The rules count entries: with one missing they would point at the wrong ones.
                self._wrong |= {inner, f"{inner}.name"}
                built.append(_nameless(declaration))
        return tuple(built)

    def _unknown_keys(self, tree: yaml_reader.Mapping, prefix: str, keys: list[str]) -> None:
        for key, (line, _) in tree.entries.items():
            if key not in keys:
                near = difflib.get_close_matches(key[:64], keys, n=1)
                hint = f"did you mean {near[0]}?" if near else "one of " + ", ".join(keys)
                place = joined(prefix, key)
                self.problems.append(Problem(self._file, line, place, "is not a known key", hint))

    def unknown_variables(self, environ: Mapping[str, str]) -> tuple[str, ...]:
        """Adds a problem for each `BATON_<SECTION>_…`; returns warnings for the others."""
        warnings = []
        for name, near, ours in environment.unknown(environ):
            hint = f"did you mean {near}?" if near else "a variable of the configuration reference"
            problem = Problem(ENVIRONMENT, 0, name, "is not a known variable", hint)
            if ours:
                self.problems.append(problem)
            else:
                warnings.append(str(problem))
        return tuple(warnings)

    def apply(self, violations: "rules.Violations") -> None:
        """Report violations at the first of their keys that is set."""
        for keys, problem, allowed in violations:
            if self._wrong.isdisjoint(keys):
                written = [key for key in keys if key in self._places]
                self._note(written[0] if written else keys[0], InvalidValue(problem, allowed))

    def _note(self, place: str, invalid: InvalidValue) -> None:
        nowhere = (self._file, int(self._file != ENVIRONMENT), place)
        file, line, key = self._places.get(place, nowhere)
        self.problems.append(Problem(file, line, key, invalid.problem, invalid.allowed))


def _scalar(kind: kinds.Kind, node: Node) -> Any:
    if not isinstance(node, Scalar):
        what = "a list" if isinstance(node, Sequence) else "a mapping"
        raise InvalidValue(f"is {what}", kind.allowed)
    if scalars.is_null(node):
        raise InvalidValue("has no value", f"{kind.allowed}, or no key for the default")
    if kind.style == "text" and (other := scalars.other_type(node)):
        raise InvalidValue(f"is {other} to YAML, not text", f"put it in quotes: {kind.allowed}")
    if kind.style == "bare" and not node.plain:
        raise InvalidValue("is text", f"{kind.allowed}, without quotes")
    return kind.parse(node.text)


def _listed(words: list[Any], declaration: Declaration) -> tuple[Any, ...]:
    for number, word in enumerate(words):
        if word in words[:number] and declaration.form == "words":
            allowed = f"each once: {_kind(declaration).allowed}"
            raise InvalidValue(f'names "{word}" twice', allowed)
    return tuple(words)


def _kind(declaration: Declaration) -> kinds.Kind:
    if declaration.kind is None:
        raise TypeError("only scalars and lists of words have a kind")
    return declaration.kind


def _nameless(declaration: Declaration) -> Any:
    """A placeholder for an invalid entry."""
    section: Any = declaration.section
    return section(name=_STAND_IN)


def _ends_above(key: str) -> list[int]:
    """Where the parents of a key such as `a.b[0].c` end."""
    return [number for number, character in enumerate(key) if character in ".["]


def _above(place: str) -> str:
    return place.rpartition(".")[0] or yaml_reader.WHOLE_FILE


def _keys(section: type[Any]) -> str:
    return ", ".join(key for key, _, _ in declarations(section))
