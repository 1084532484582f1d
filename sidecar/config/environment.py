"""Which environment variables set which settings.

`BATON_<SECTION>_<KEY>` sets one value and wins over the file; lists are separated by commas; a
secret may also come from a file named by `…_FILE`. `BATON_CONFIG` names the file itself.

Other variables that start with `BATON_`:

- Kubernetes sets variables for each Service of the namespace. For a Service called `baton` or
  `baton-…` these are `BATON_SERVICE_HOST`, `BATON_PORT_9400_TCP` and so on. They are ignored.
- An unknown `BATON_<SECTION>_…` is a problem, like an unknown key in the file.
- Another name that is close to a known one is a warning. All others are ignored.
"""

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sidecar.config import kinds
from sidecar.config.declare import Declaration, declarations
from sidecar.config.settings import Settings

CONFIG = "BATON_CONFIG"
# Matched with the value, because BATON_HTTP_PORT=9500 is a user's mistake, not a Service.
_SERVICE_LINK = re.compile(
    r"BATON(_[A-Z0-9_]+)?_(SERVICE_HOST=.*|SERVICE_PORT(_[A-Z0-9_]+)?=[0-9]*"
    r"|PORT=(tcp|udp|sctp)://.*|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?=.*)"
)


@dataclass(frozen=True, slots=True)
class Given:
    """One setting found in the environment."""

    variable: str
    text: str
    from_file: bool  # the text is the path of a file that holds the secret


def variables() -> Iterator[tuple[str, str, Declaration]]:
    """Variable, dotted key and declaration of every setting that the environment can hold."""
    for key, _, declaration in declarations(Settings):
        if declaration.section is None:
            yield f"BATON_{key.upper()}", key, declaration
        elif declaration.form == "section":
            for inner, _, inner_declaration in declarations(declaration.section):
                if inner_declaration.section is not None:
                    continue
                yield f"BATON_{key}_{inner}".upper(), f"{key}.{inner}", inner_declaration


def takes_file(declaration: Declaration) -> bool:
    return isinstance(declaration.kind, kinds.Secret)


def given(environ: Mapping[str, str]) -> dict[str, list[Given]]:
    """The settings of the environment, by dotted key; two entries for a key are a conflict."""
    found: dict[str, list[Given]] = {}
    for variable, key, declaration in variables():
        if variable in environ:
            found.setdefault(key, []).append(Given(variable, environ[variable], from_file=False))
        file_variable = f"{variable}_FILE"
        if takes_file(declaration) and file_variable in environ:
            path = environ[file_variable]
            found.setdefault(key, []).append(Given(file_variable, path, from_file=True))
    return found


def unknown(environ: Mapping[str, str]) -> Iterator[tuple[str, str, bool]]:
    """Unknown variables: name, nearest known name or empty, and whether it is a problem."""
    known = {CONFIG}
    for variable, _, declaration in variables():
        known |= {variable, f"{variable}_FILE"} if takes_file(declaration) else {variable}
    sections = tuple(
        f"BATON_{key.upper()}_" for key, _, found in declarations(Settings) if found.section
    )
    for name in sorted(environ):
        if not name.startswith("BATON_") or name in known:
            continue
        if _SERVICE_LINK.fullmatch(f"{name}={environ[name]}"):
            continue
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.9)
        ours = name.startswith(sections)
        if near or ours:
            yield name, near[0] if near else "", ours
