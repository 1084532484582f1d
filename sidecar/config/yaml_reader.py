"""Parses one YAML file into a tree with line numbers, or a list of problems.

Guarantees: only a subset of YAML is accepted: one document of mappings, lists and scalars. These
are refused with their line: duplicate keys, anchors, aliases, merge keys, tags, tabs in the
indentation, control characters. Size and depth are limited; no problem contains text of the file,
because it may be a password.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NoReturn

import yaml

from sidecar.config.problems import Problem

BYTES_MAX = 1024 * 1024
WHOLE_FILE = "(file)"  # in place of a key
_DEPTH_MAX = 32
# Line ends other than \n and \r would also make our line numbers differ from the editor's.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_TAB_INDENT = re.compile(r"^ *\t", re.MULTILINE)
_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times faster where it is built


@dataclass(slots=True)
class Scalar:
    line: int
    text: str
    plain: bool  # written without quotes


@dataclass(slots=True)
class Sequence:
    line: int
    items: list["Node"] = field(default_factory=list)


@dataclass(slots=True)
class Mapping:
    line: int
    entries: dict[str, tuple[int, "Node"]] = field(default_factory=dict)  # key -> its line, value


Node = Scalar | Sequence | Mapping


class _Unusable(Exception):
    """The file cannot be parsed further; the problem is in the list."""


def read(content: bytes, file: str) -> tuple[Mapping | None, list[Problem]]:
    """The top-level mapping, None if there is none; and the problems of the file as YAML."""
    reader = _Reader(file)
    try:
        return reader.document(reader.text(content)), reader.problems
    except _Unusable:
        return None, reader.problems


class _Reader:
    def __init__(self, file: str) -> None:
        self._file = file
        self.problems: list[Problem] = []

    def text(self, content: bytes) -> str:
        if len(content) > BYTES_MAX:
            self._give_up(1, "is too large", "at most 1 MiB")
        try:
            text = content.decode().removeprefix("\ufeff")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            self._give_up(line, "is not UTF-8", "a text in UTF-8")
        for pattern, problem, allowed in (
            (_CONTROL, "holds a control character", "printable characters"),
            (_TAB_INDENT, "is indented with a tab", "spaces"),
        ):
            if match := pattern.search(text):
                self._give_up(text.count("\n", 0, match.start()) + 1, problem, allowed)
        return text

    def document(self, text: str) -> Mapping:
        events = self._events(text)
        next(events)  # the start of the stream
        event = next(events)
        if isinstance(event, yaml.StreamEndEvent):
            self._give_up(1, "is empty", "a mapping that names at least the cluster")
        root = self._node(next(events), events, "", 0)
        next(events)  # the end of the document
        event = next(events)
        if not isinstance(event, yaml.StreamEndEvent):
            self._give_up(_line(event), "holds a second document", "one document")
        if not isinstance(root, Mapping):
            self._give_up(
                root.line, "is not a mapping", "keys with values, such as cluster: orders"
            )
        return root

    def _events(self, text: str) -> Iterator[Any]:
        try:
            yield from yaml.parse(text, Loader=_LOADER)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            self._give_up((mark.line if mark else 0) + 1, f"is not YAML: {_said(error)}", "YAML")
        except (yaml.YAMLError, ValueError, OverflowError):
            # A character or an escape that YAML does not know.
            self._give_up(1, "is not YAML: a character is not allowed", "YAML")

    def _node(self, event: Any, events: Iterator[Any], key: str, depth: int) -> Node:
        line = _line(event)
        self._refuse_cleverness(event, key)
        if depth > _DEPTH_MAX:
            self._give_up(line, "is nested too deeply", f"at most {_DEPTH_MAX} levels", key)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(Mapping(line), events, key, depth)
        if isinstance(event, yaml.SequenceStartEvent):
            sequence = Sequence(line)
            while not isinstance(event := next(events), yaml.SequenceEndEvent):
                place = f"{key}[{len(sequence.items)}]"
                sequence.items.append(self._node(event, events, place, depth + 1))
            return sequence
        if isinstance(event, yaml.AliasEvent):
            return Scalar(line, "", plain=True)
        return Scalar(line, event.value, plain=not event.style)

    def _mapping(self, mapping: Mapping, events: Iterator[Any], key: str, depth: int) -> Mapping:
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            name_node = self._node(event, events, key, depth + 1)
            name = name_node.text if isinstance(name_node, Scalar) else ""
            place = joined(key, name)
            value = self._node(next(events), events, place, depth + 1)
            if not isinstance(name_node, Scalar):
                self._note(name_node.line, key, "has a key that is not text", "text as keys")
            elif name == "<<" and name_node.plain:
                self._note(name_node.line, key, "uses a merge key", "each key written out")
            elif name in mapping.entries:
                first = mapping.entries[name][0]
                self._note(name_node.line, place, "is given twice", f"once; it is on line {first}")
            else:
                mapping.entries[name] = (name_node.line, value)
        return mapping

    def _refuse_cleverness(self, event: Any, key: str) -> None:
        if isinstance(event, yaml.AliasEvent):
            self._note(_line(event), key, "uses an alias", "each value written out")
        elif event.anchor is not None:
            self._note(_line(event), key, "has an anchor", "values without & anchors")
        if getattr(event, "tag", None) is not None:
            self._note(_line(event), key, "has a tag", "values without ! tags")

    def _note(self, line: int, key: str, problem: str, allowed: str) -> None:
        self.problems.append(Problem(self._file, line, key or WHOLE_FILE, problem, allowed))

    def _give_up(self, line: int, problem: str, allowed: str, key: str = "") -> NoReturn:
        self._note(line, key, problem, allowed)
        raise _Unusable


def joined(parent: str, key: str) -> str:
    """`election` and `lease` give `election.lease`; a key with unusual characters is not shown."""
    name = _shown(key)
    return f"{parent}.{name}" if parent else name


@lru_cache(maxsize=256)
def _shown(key: str) -> str:
    return key if _KEY.fullmatch(key) else "?"


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _said(error: yaml.MarkedYAMLError) -> str:
    """The parser's message, without text that it quotes from the file."""
    return re.sub(r"'[^', ]{3,}'", "…", error.problem or "it ends too early")
