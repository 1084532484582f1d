"""Reading the user's files: regular ones only, bounded, in time, the last good content kept."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from sidecar.adapters.files import ContentWatch, FollowedSecret, SecretFiles, beside_loop
from sidecar.config import SecretSource, SecretUnreadable, files
from sidecar.config.files import FileUnreadable, file_stamp, read_file, settled
from sidecar.logs import redacted
from tests.lab.volumes import hanging


def test_no_more_than_asked_is_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 100)
    assert read_file(file, 100) == b"x" * 100
    assert read_file(file, 10) == b"x" * 11


def test_a_sparse_file_of_any_size_costs_no_memory(tmp_path: Path) -> None:
    file = tmp_path / "file"
    with file.open("wb") as sparse:
        sparse.truncate(2**40)
    with pytest.raises(SecretUnreadable, match="larger than 64 KiB"):
        SecretSource.from_file(file).read()


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/tty", "/dev/null"])
def test_devices_are_refused(path: str) -> None:
    with pytest.raises(FileUnreadable, match="is a device, not a regular file"):
        read_file(path, 10)


def test_a_volume_that_hangs_costs_one_thread_and_a_limited_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "READ_SECONDS", 0.2)
    file = tmp_path / "volume" / "file"
    file.parent.mkdir()
    file.write_text("there")
    with hanging(file.parent):
        before = threading.active_count()
        for _ in range(5):
            with pytest.raises(FileUnreadable, match=r"no answer within 0\.2 s"):
                read_file(file, 10)
        assert threading.active_count() == before + 1
        waiting = files._hanging[str(file)]
    waiting.join(30)
    assert read_file(file, 10) == b"there"


def test_a_stamp_shows_what_a_look_at_the_size_does_not(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("one")
    first = file_stamp(file)
    assert not settled(first)  # written just now: the next write may not show
    other = tmp_path / "other"
    other.write_text("two")
    os.utime(other, ns=(first[-2], first[-2]))
    other.replace(file)
    assert file_stamp(file) != first


def test_content_is_compared_not_times(tmp_path: Path) -> None:
    file = tmp_path / "file"
    watch = ContentWatch(file)
    assert watch.changed()  # from nothing to missing
    file.write_text("one")
    assert watch.changed()
    os.utime(file)
    assert not watch.changed()
    file.write_text("two")  # at once, and of the same size
    assert watch.changed()
    file.unlink()
    assert watch.changed()
    assert not watch.changed()


def test_a_followed_secret_keeps_the_last_good_one(tmp_path: Path) -> None:
    """G12: and hides the new one from when it counts."""
    file = tmp_path / "url"
    file.write_text("first-secret")
    with capture_logs() as told:
        secret = FollowedSecret("postgres.url", SecretSource.from_file(file), SecretSource.read)
        for content in ("second-secret", "", "", "third-secret", "third-secret"):
            file.write_text(content)
            secret.take(*secret.look())
            assert secret.read() == content or secret.read() == "second-secret"
    assert secret.read() == "third-secret"
    assert redacted("second-secret third-secret") == "*** ***"
    assert [line["event"] for line in told] == ["secret_unreadable", "secret_readable_again"]
    assert told[0]["problem"] == "is empty"
    assert "secret" not in str(told[0]["problem"])


async def test_files_are_followed_and_texts_are_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first-token")
    secrets = SecretFiles()
    text = SecretSource.of("text")
    assert secrets.follow("redis.url", text) is text
    token = secrets.follow("api.token_file", SecretSource.from_file(file), SecretSource.read_token)
    following = asyncio.create_task(secrets.run())
    file.write_text("two\nlines")
    async with asyncio.timeout(20):
        while not list(secrets.problems()):  # noqa: ASYNC110 - a file cannot notify
            await asyncio.sleep(0.02)
        assert token.read_token() == "first-token"
        file.write_text("second-token")
        while token.read_token() != "second-token":  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert not list(secrets.problems())
    following.cancel()


async def test_what_goes_wrong_beside_the_loop_reaches_the_caller() -> None:
    def fail() -> None:
        raise ValueError("there")

    with pytest.raises(ValueError, match="there"):
        await beside_loop(fail)
    assert await beside_loop(threading.current_thread) is not threading.current_thread()
