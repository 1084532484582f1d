"""How many calls the API takes, and what gives way when memory is short."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from sidecar.adapters.memory import MemoryWatch, limit_bytes
from sidecar.model.admission import (
    CEILING_BYTES,
    Admission,
    AdmissionLimits,
    Stream,
    memory_ceiling,
)
from sidecar.model.errors import Overloaded

LIMITS = AdmissionLimits(open_streams=2, streams=5, connection_streams=3, calls=2)


def _stream(ended: list[str] | None = None, name: str = "a", authenticated: bool = True) -> Stream:
    told = ended if ended is not None else []
    return Stream(name, authenticated, lambda: told.append(name))


def test_streams_without_a_token_are_limited_first() -> None:
    admission = Admission(LIMITS)
    with ExitStack() as open_:
        for name in "ab":
            open_.enter_context(admission.stream(_stream(name=name, authenticated=False)))
        with (
            pytest.raises(Overloaded, match="without a token"),
            admission.stream(_stream(authenticated=False)),
        ):
            pass
        open_.enter_context(admission.stream(_stream()))
    assert admission.streams == 0


def test_one_connection_cannot_take_all_streams() -> None:
    admission = Admission(LIMITS)
    with ExitStack() as open_:
        for _ in range(3):
            open_.enter_context(admission.stream(_stream(name="greedy")))
        with (
            pytest.raises(Overloaded, match="on this connection"),
            admission.stream(_stream(name="greedy")),
        ):
            pass
        for _ in range(2):
            open_.enter_context(admission.stream(_stream(name="modest")))
        with pytest.raises(Overloaded, match="5 streams"), admission.stream(_stream(name="late")):
            pass


def test_calls_under_way_are_limited_and_ended_ones_do_not_count() -> None:
    admission = Admission(LIMITS)
    for _ in range(5):
        with admission.call():
            pass
    with admission.call(), admission.call(), pytest.raises(Overloaded), admission.call():
        pass


def test_short_memory_refuses_new_work_and_ends_the_oldest_streams() -> None:
    admission, ended = Admission(AdmissionLimits()), list[str]()
    with ExitStack() as open_:
        open_.enter_context(admission.stream(_stream(ended, "oldest")))
        open_.enter_context(admission.stream(_stream(ended, "newer")))
        open_.enter_context(admission.stream(_stream(ended, "stranger", authenticated=False)))
        assert admission.record_memory(99, 100) == 0
        assert [admission.record_memory(100, 100) for _ in range(3)] == [1, 1, 1]
        assert ended == ["stranger", "oldest", "newer"]
        assert admission.record_memory(100, 100) == 0
        with pytest.raises(Overloaded), admission.call():
            pass
        with admission.call(essential=True):
            pass
        with pytest.raises(Overloaded), admission.stream(_stream()):
            pass
    admission.record_memory(50, 100)
    with admission.call(), admission.stream(_stream()):
        pass


def test_the_ceiling_follows_the_limit_of_the_container() -> None:
    assert memory_ceiling(None) == CEILING_BYTES
    assert memory_ceiling(200 << 20) == int((200 << 20) * 0.85)


def test_the_watch_tells_what_it_reads() -> None:
    admission = Admission()
    watch = MemoryWatch(admission, used=lambda: 900, limit=lambda: 1000)
    watch.look()
    with pytest.raises(Overloaded), admission.call():
        pass


@pytest.mark.parametrize(
    ("file", "text", "limit"),
    [
        ("sys/fs/cgroup/memory.max", "134217728\n", 134217728),
        ("sys/fs/cgroup/memory.max", "max\n", None),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "134217728\n", 134217728),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n", None),
        ("sys/fs/cgroup/kubepods/pod1/memory.max", "1000\n", 1000),
        ("sys/fs/cgroup/memory/kubepods/pod1/memory.limit_in_bytes", "1000\n", 1000),
        ("sys/fs/cgroup/cpu.max", "1000\n", None),
    ],
)
def test_limits_of_both_cgroup_versions(
    tmp_path: Path, file: str, text: str, limit: int | None
) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    cgroups = "4:memory:/kubepods/pod1\n3:cpu,cpuacct:/x\n0::/kubepods/pod1\n"
    (tmp_path / "proc/self/cgroup").write_text(cgroups)
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert limit_bytes(tmp_path) == limit
