"""Handlers that take many jobs at once."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Callable
from typing import Any

from .attempt import Attempt, NotRetryable


class Batches:
    """Collects the jobs of the next batch. It belongs to one event loop."""

    def __init__(self, function: Callable[..., Any], most: int, wait: float, takes_attempts: bool) -> None:
        self._function, self._most, self._wait, self._takes_attempts = function, most, wait, takes_attempts
        self._items: list[tuple[Any, Attempt, asyncio.Future[Any]]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._running: set[asyncio.Task[None]] = set()

    async def add(self, payload: Any, attempt: Attempt) -> Any:
        """Runs an attempt in a batch, and returns its output."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[Any] = loop.create_future()
        item = (payload, attempt, ended)
        self._items.append(item)
        if len(self._items) >= self._most:
            self._begin()
        elif self._timer is None:
            self._timer = loop.call_later(self._wait, self._begin)
        while True:
            try:
                return await asyncio.shield(ended)
            except asyncio.CancelledError:
                if item in self._items:  # it has not begun
                    self._items.remove(item)
                    raise
                if ended.done():
                    raise
                # The batch works on it still: the job must not start elsewhere meanwhile.

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        items, self._items = self._items, []
        # Its own context: the task of the attempt that completes the batch may be cancelled.
        task = asyncio.get_running_loop().create_task(self._run(items), context=contextvars.copy_context())
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _run(self, items: list[tuple[Any, Attempt, asyncio.Future[Any]]]) -> None:
        payloads, attempts = [payload for payload, _, _ in items], [attempt for _, attempt, _ in items]
        arguments = (payloads, attempts) if self._takes_attempts else (payloads,)
        try:
            if inspect.iscoroutinefunction(self._function):
                outputs = list(await self._function(*arguments))
            else:
                outputs = list(await asyncio.to_thread(self._function, *arguments))
        except BaseException as error:
            outputs = [error] * len(items)
        text = "the batch handler has returned no result for the job"
        for i, (_, _, ended) in enumerate(items):
            output = outputs[i] if i < len(outputs) else NotRetryable(text, error_code="WORKER.NO_RESULT")
            if ended.done():  # its attempt was cancelled
                continue
            if isinstance(output, BaseException):
                ended.set_exception(output if isinstance(output, Exception) else RuntimeError(repr(output)))
            else:
                ended.set_result(output)
