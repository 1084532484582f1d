"""The fenced blocks of our Markdown pages, so that tests run what a reader would run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_NAMED = re.compile(r"(?:#|//) (\S+\.\w+)$")


@dataclass(frozen=True, slots=True)
class Block:
    """One block: its language, where it stands (heading, `<summary>` of a fold), and its text."""

    page: str
    line: int
    language: str
    heading: str
    fold: str
    text: str

    @property
    def file(self) -> str:
        """The name in its first line, a comment: the reader saves it under that name."""
        found = _NAMED.match(self.text.partition("\n")[0])
        return found[1] if found else ""

    @property
    def prose(self) -> bool:
        """A picture or an extract of a template: nothing that could be run as it stands."""
        return self.language == "text"

    def __str__(self) -> str:
        return f"{self.page}:{self.line} {self.language}"


@cache
def blocks(page: str) -> tuple[Block, ...]:
    """All blocks of a page (by its path below the repository), in its order."""
    return tuple(_read(page))


def _read(page: str) -> Iterator[Block]:
    heading = fold = ""
    opened: tuple[int, str] | None = None
    text: list[str] = []
    for number, line in enumerate((ROOT / page).read_text().splitlines(), 1):
        if opened and line == "```":
            yield Block(page, opened[0], opened[1], heading, fold, "\n".join(text) + "\n")
            opened = None
        elif opened:
            text.append(line)
        elif line.startswith("```"):
            opened, text = (number, line.removeprefix("```")), []
        elif line.startswith("#"):
            heading = line.lstrip("# ")
        elif summary := re.match(r"<summary><b>(.*)</b></summary>", line):
            fold = summary[1]
        elif line == "</details>":
            fold = ""
    assert opened is None, f"{page}: a block is never closed"


def script(chosen: list[Block]) -> str:
    """What a reader types: files are saved under their names, commands are run, in this order."""
    parts = []
    for block in chosen:
        if block.file:
            end = f"END OF {block.file}"
            parts.append(f"cat > {block.file} <<'{end}'\n{block.text}{end}\n")
        elif block.language == "sh":
            parts.append(block.text)
    return "\n".join(parts)
