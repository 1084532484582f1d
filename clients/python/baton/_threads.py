"""Plain functions of the user, run in threads of their own.

A thread cannot be interrupted. When the caller is cancelled, the function is still waited for, so
that "the handler has ended" is never said too early. Threads are daemons: they never keep a
process alive.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Any


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it gives a coroutine at once, without running anything of the user's."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object with `async def __call__`
    )


async def invoke(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """The result of a function of the user: coroutine functions here, all others in a thread."""
    if is_async(function):
        return await function(*args, **kwargs)
    return await invoke_in_thread(function, *args, **kwargs)


async def invoke_in_thread(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """The result of a plain function; one that returns an awaitable has it awaited here."""
    result = await _in_thread(partial(function, *args, **kwargs))
    return await result if inspect.isawaitable(result) else result


async def _in_thread(function: Callable[[], Any]) -> Any:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    context = copy_context()

    def body() -> None:
        outcome: tuple[Any, BaseException | None]
        try:
            outcome = context.run(function), None
        except BaseException as error:
            outcome = None, error
        with contextlib.suppress(RuntimeError):  # the loop has closed: nobody waits
            loop.call_soon_threadsafe(_settle, done, outcome)

    threading.Thread(target=body, name="baton-handler", daemon=True).start()
    try:
        result, error = await asyncio.shield(done)
    except asyncio.CancelledError:
        await asyncio.wait({done})
        raise
    if error is not None:
        raise error
    return result


def _settle(
    done: asyncio.Future[tuple[Any, BaseException | None]],
    outcome: tuple[Any, BaseException | None],
) -> None:
    if not done.done():
        done.set_result(outcome)
