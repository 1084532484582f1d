"""Files that may change while the sidecar runs, read in a thread.

Guarantees: reading a secret returns the last valid one from memory: a volume that hangs delays no
ping, no probe and no shutdown. A changed file is used within about LOOK_SECONDS. A file that cannot
be used is logged once, shown in /health, and logged again when it can be used.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import copy_context
from hashlib import sha256
from pathlib import Path
from threading import Thread
from typing import TypeVar

import structlog

from sidecar.config import SecretSource, SecretUnreadable
from sidecar.config.files import FileUnreadable, file_stamp, read_file, settled
from sidecar.config.yaml_reader import BYTES_MAX
from sidecar.logs import add_secret

log = structlog.get_logger()

T = TypeVar("T")
LOOK_SECONDS = 1.0


async def beside_loop(work: Callable[[], T]) -> T:
    """The result of `work`, run in a daemon thread.

    Not asyncio's executor: the process would wait for its threads at the end.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def tell(result: T | None, error: Exception | None) -> None:
        if answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, failure = None, None
        try:
            result = work()
        except Exception as error:
            failure = error
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(tell, result, failure)

    Thread(target=copy_context().run, args=(run,), name="baton.beside-loop", daemon=True).start()
    return await answer


class ContentWatch:
    """Whether the content of a file changed; an unchanged stamp saves reading it."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._stamp: object = None
        self._seen: bytes | str = ""

    def changed(self) -> bool:
        """Blocks: call it in a thread."""
        if self._path is None:
            return False
        before = self._seen
        try:
            stamp = file_stamp(self._path)
            if stamp == self._stamp:
                return False
            self._seen = sha256(read_file(self._path, BYTES_MAX)).digest()
            self._stamp = stamp if settled(stamp) else None
        except FileUnreadable as error:
            self._seen, self._stamp = str(error), None
        return self._seen != before


class FollowedSecret:
    """The last valid content of a secret file."""

    def __init__(
        self, setting: str, source: SecretSource, read: Callable[[SecretSource], str]
    ) -> None:
        self.setting = setting
        self.problem = ""
        self._source = source
        self._read = read
        self._text = ""
        self._stamp: object = None
        self._changes = 0
        self.take(*self.look())  # the start waits for it, as for the configuration

    @property
    def is_set(self) -> bool:
        return True

    def stamp(self) -> object:
        return self._changes

    def read(self) -> str:
        if not self._text:
            raise SecretUnreadable(self.problem)
        return self._text

    read_token = read

    def look(self) -> tuple[object, str, str]:
        """The stamp of the file, and its content or its problem; both empty: no change."""
        stamp = self._source.stamp()
        if stamp is not None and stamp == self._stamp:
            return stamp, "", ""
        try:
            return stamp, self._read(self._source), ""
        except SecretUnreadable as error:
            return None, "", str(error)

    def take(self, stamp: object, text: str, problem: str) -> None:
        """Keep the result of `look`."""
        if problem:
            self._stamp = None
            if problem != self.problem:
                log.warning(
                    "secret_unreadable", setting=self.setting, path=self._path, problem=problem
                )
            self.problem = problem
            return
        if self.problem:
            log.info("secret_readable_again", setting=self.setting, path=self._path)
        self.problem = ""
        self._stamp = stamp if settled(stamp) else None
        if text and text != self._text:
            add_secret(text)
            self._text = text
            self._changes += 1

    @property
    def _path(self) -> str:
        return str(self._source.path)


class SecretFiles:
    """All secrets of this process that are read from files."""

    def __init__(self) -> None:
        self._followed: dict[object, FollowedSecret] = {}

    def follow(
        self,
        setting: str,
        source: SecretSource,
        read: Callable[[SecretSource], str] = SecretSource.read,
    ) -> SecretSource | FollowedSecret:
        """`source` itself if it is a text, else the content of its file, kept in memory."""
        if source.path is None:
            return source
        key = source.path, read
        if key not in self._followed:
            self._followed[key] = FollowedSecret(setting, source, read)
        return self._followed[key]

    def problems(self) -> Iterator[str]:
        for secret in self._followed.values():
            if secret.problem:
                yield f"{secret.setting}: its file {secret.problem}; the last good one is in use"

    async def run(self) -> None:
        if not self._followed:
            return
        secrets = list(self._followed.values())
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for secret in secrets:
                secret.take(*await beside_loop(secret.look))
