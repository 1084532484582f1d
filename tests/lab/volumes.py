"""A volume that hangs: whoever asks it for anything waits, as for an NFS server that is gone."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_LIBC = ctypes.CDLL(None, use_errno=True)
_MNT_DETACH = 2


@contextmanager
def hanging(directory: Path) -> Iterator[None]:
    """Within the block nothing below `directory` answers: a FUSE mount that nobody serves.

    At the end the mount goes, whoever waited gets an error, and what was there before is back.
    """
    try:
        device = os.open("/dev/fuse", os.O_RDWR)
    except OSError as error:
        pytest.skip(f"no /dev/fuse: {error.strerror}")
    try:
        options = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
        target = os.fsencode(directory)
        if _LIBC.mount(b"hanging", target, b"fuse", 0, options.encode()):
            pytest.skip(f"FUSE cannot be mounted: {os.strerror(ctypes.get_errno())}")
        try:
            yield
        finally:
            _LIBC.umount2(target, _MNT_DETACH)
    finally:
        os.close(device)
