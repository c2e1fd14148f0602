"""Requests of a worker that carry the entries of many attempts."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

Answer: TypeAlias = tuple[int, str]
"""The status of an entry, and why it was refused."""

MOST = 500  # entries in a request, as the gateway allows
PAUSE = 0.002  # seconds before a request: attempts of one claim may end together
MOST_CHARS = 1 << 20  # beyond this a request gets no further entry


class Together:
    """Sends entries, which are JSON, together: a request carries all that have come while the last one was under way."""

    def __init__(self, send: Callable[[Sequence[str]], Awaitable[list[Answer]]]) -> None:
        self._send = send
        self._waiting: deque[tuple[str, asyncio.Future[Answer]]] = deque()
        self._sending: asyncio.Task[None] | None = None

    async def add(self, entry: str) -> Answer:
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((entry, answer))
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_all())
        return await answer

    async def _send_all(self) -> None:
        while self._waiting:
            await asyncio.sleep(PAUSE)
            batch = self._next()
            entries = [entry for entry, _ in batch]
            answers = await self._send(entries)
            # A request that is refused as a whole may be refused because of one entry.
            if len(batch) > 1 and all(status in (400, 413) for status, _ in answers):
                answers = [(await self._send([entry]))[0] for entry in entries]
            for (_, future), answer in zip(batch, answers, strict=True):
                if not future.done():
                    future.set_result(answer)

    def _next(self) -> list[tuple[str, asyncio.Future[Answer]]]:
        batch, chars = [self._waiting.popleft()], 0
        while self._waiting and len(batch) < MOST and (chars := chars + len(batch[-1][0])) + len(self._waiting[0][0]) <= MOST_CHARS:
            batch.append(self._waiting.popleft())
        return batch
