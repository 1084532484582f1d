"""What a process holds, as the kernel sees it: connections by port, descriptors, memory."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

_ESTABLISHED = "01"


def connections(pid: int, ports: Collection[int]) -> int:
    """Its TCP connections that stand, to any of these ports."""
    inodes = {link[8:-1] for link in _links(pid) if link.startswith("socket:[")}
    found = 0
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            port = int(fields[2].rpartition(":")[2], 16)
            found += fields[3] == _ESTABLISHED and port in ports and fields[9] in inodes
    return found


def descriptors(pid: int) -> int:
    return len(_links(pid))


def megabytes(pid: int) -> float:
    """Its resident memory."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _links(pid: int) -> list[str]:
    folder, links = Path(f"/proc/{pid}/fd"), []
    for entry in os.listdir(folder):
        try:
            links.append(os.readlink(folder / entry))
        except FileNotFoundError:
            continue  # closed meanwhile
    return links
