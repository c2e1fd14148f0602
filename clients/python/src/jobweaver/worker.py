"""Worker, which claims attempts, runs their handlers and settles them."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import json
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar

import httpx
from pydantic import BaseModel

from . import models
from ._checkpoint import Checkpoint
from ._steps import backoff
from .attempt import AbortReason, Attempt, NotRetryable, Outcome, clean
from .client import AsyncClient
from .errors import ApiError, ClientClosed, GatewayUnreachable, JobWeaverError

Handler: TypeAlias = Callable[[Attempt], Any]
H = TypeVar("H", bound=Handler)

logger = logging.getLogger("jobweaver.worker")

HOLD = 30.0
LOST_AFTER = 10.0  # without an answered heartbeat; 5 s later the next attempt may start
LAST_ANSWER = 0.5  # for the response to the open claim when the worker stops
LINES_IN_BEAT = 200  # of one attempt
FAILURES = (JobWeaverError, httpx.HTTPError, TimeoutError, ValueError)  # of a request, or of a response that cannot be parsed
BEAT_BYTES = 800_000  # of progress and lines; with the tokens a heartbeat stays below its limit


class _Held:
    """An attempt of the worker, from its claim until its result is stored and its handler has ended."""

    def __init__(self, attempt: Attempt, token: str) -> None:
        self.attempt, self.token = attempt, token
        self.alive = time.monotonic()  # when the last answered heartbeat was sent
        self.settling = self.lost = False
        self.cancel: Callable[[], object] = lambda: None  # of an asyncio handler

    def keep(self, saved: Any, loop: asyncio.AbstractEventLoop | None, store: Callable[[int, Any], Awaitable[None]]) -> None:
        """Gives the attempt its checkpoint."""
        attempt = self.attempt
        attempt._kept, attempt._loop, attempt._loop_thread = Checkpoint(saved, store), loop, threading.get_ident()
        attempt.checkpoint = attempt._kept.own

    def end(self, reason: AbortReason) -> None:
        if self.settling:
            return
        self.lost = self.lost or reason == "lost"
        if not self.attempt.cancelled.is_set():
            self.attempt.reason = reason
            self.attempt.cancelled.set()
            self.cancel()


class Worker:
    """Claims attempts, runs their handlers and settles them, until it is stopped. It runs once.

    `concurrency` is how many attempts run at once, from 1 to 500. It takes attempts of `queues`; without them, of all that its key
    covers. Each worker has another `name`, by default made of the host's. After stop() running attempts go on for `grace` seconds
    before they are cancelled. A beat is sent every `beat` seconds; without one for 10 s an attempt is lost.

    A handler that is a coroutine function runs in the worker's event loop, any other in a thread of its own. run() and `with`
    have an event loop of their own and close the client at their end; serve() and `async with` run in the caller's.
    """

    def __init__(
        self,
        client: AsyncClient,
        *,
        concurrency: int = 10,
        queues: Sequence[str] = (),
        name: str | None = None,
        grace: float = 25.0,
        beat: float = 3.0,
    ) -> None:
        if not 1 <= concurrency <= 500:
            raise ValueError("concurrency must be from 1 to 500")
        self.name = name or f"{socket.gethostname()[:100]}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._client, self._concurrency, self._queues = client, concurrency, list(queues)
        self._grace, self._every = grace, beat
        self._handlers: dict[str, Handler] = {}
        self._held: dict[asyncio.Task[None], _Held] = {}
        self._stopped = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Future[None] | None = None
        self._task: asyncio.Task[None] | None = None

    def handler(self, job_type: str) -> Callable[[H], H]:
        """Decorates the function that runs attempts of a job type. It takes an Attempt and returns the output."""

        def register(handler: H) -> H:
            self._handlers[job_type] = handler
            return handler

        return register

    def run(self) -> None:
        """Runs attempts until stop() is called. It raises if the gateway refuses claims of this worker."""
        asyncio.run(self._serve_and_close())

    async def _serve_and_close(self) -> None:
        async with self._client:
            await self.serve()

    def stop(self) -> None:
        """Stops run(): the worker claims nothing more, and running handlers have the grace period to end.

        Any thread may call it, and a signal handler.
        """
        self._stopped = True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._stopping.set)

    def __enter__(self) -> Self:
        self._thread = ThreadPoolExecutor(1, "jobweaver-worker").submit(self.run)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
        if self._thread is not None:
            self._thread.result()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self.serve())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
        if self._task is not None:
            await self._task

    async def serve(self) -> None:
        """Runs attempts like run(), in the caller's event loop. If its task is cancelled, it stops like stop()."""
        if not self._handlers:
            raise ValueError("a worker needs a handler")
        if self._loop is not None:
            raise RuntimeError("a worker runs once")
        self._stopping, self._beating = asyncio.Event(), asyncio.Lock()
        self._loop = asyncio.get_running_loop()  # from now on stop() sets the event; before, it set a flag
        if self._stopped:
            self._stopping.set()
        stop, beats = asyncio.create_task(self._stopping.wait()), asyncio.create_task(self._beats())
        try:
            await self._claims(stop)
        finally:
            self._stopping.set()
            if self._held:
                await asyncio.wait(self._held, timeout=self._grace)
            for held in self._held.values():
                held.end("stop")
            if self._held:
                await asyncio.wait(self._held)  # while a handler runs, its attempt must not start elsewhere
            stop.cancel()
            beats.cancel()
            await asyncio.wait({stop, beats})

    async def _claims(self, stop: asyncio.Task[Any]) -> None:
        wait = min(HOLD, (self._client.timeout or 2 * HOLD) / 2)
        asked = {"worker": self.name, "types": list(self._handlers), "queues": self._queues, "wait": f"{int(wait * 1000)}ms"}
        failed = 0
        while not stop.done():
            slots = self._concurrency - len(self._held)
            if slots == 0:
                await asyncio.wait({stop, *self._held}, return_when=asyncio.FIRST_COMPLETED)
                continue
            pause, begin = 0.0, time.monotonic()
            claim = asyncio.create_task(self._client.request("POST", "/api/workers/claim", json=asked | {"slots": slots}))
            try:
                await asyncio.wait({stop, claim}, return_when=asyncio.FIRST_COMPLETED)
                if stop.done() and not (await asyncio.wait({claim}, timeout=LAST_ANSWER))[0]:
                    return
                answer = claim.result()
                attempts = models.WorkAttempts.model_validate_json(answer.content).attempts if answer.content else []
                for attempt in attempts:
                    self._start(attempt, answer)
                # A stopping instance answers claims at once.
                early = not attempts and time.monotonic() - begin < wait / 2
                failed, pause = (failed + 1, backoff(failed)) if early else (0, 0.0)
            except JobWeaverError as error:
                if not _is_temporary(error):
                    raise
                logger.warning("cannot claim attempts: %s", error)
                pause = max(backoff(failed), (isinstance(error, ApiError) and error.retry_after) or 0)
                failed += 1
            finally:
                claim.cancel()
            await asyncio.wait({stop}, timeout=pause)

    def _start(self, claimed: models.WorkAttempt, answer: httpx.Response) -> None:
        shared = Attempt.__dataclass_fields__.keys() & models.WorkAttempt.model_fields.keys()
        members = {name: getattr(claimed, name) for name in shared}
        held = _Held(Attempt(number=claimed.attempt, **members), claimed.token)
        held.keep(claimed.checkpoint, self._loop, lambda number, value: self._save(held, number, value))
        now = datetime.now(UTC)
        if date := answer.headers.get("Date"):  # deadlines are in the gateway's time
            theirs = parsedate_to_datetime(date)
            now = now if abs(now - theirs) < timedelta(seconds=2) else theirs  # a Date has whole seconds
        task = asyncio.create_task(self._attempt(held, (claimed.deadline - now).total_seconds()))
        self._held[task] = held
        task.add_done_callback(self._held.pop)

    async def _attempt(self, held: _Held, left: float) -> None:
        attempt = held.attempt
        deadline = asyncio.get_running_loop().call_later(left, held.end, "deadline")
        if self._stopping.is_set():
            held.end("stop")  # it arrived with the last response, and is given back
        handling = self._handle(held)
        await asyncio.wait({handling})
        deadline.cancel()
        attempt._closed = True
        result: dict[str, Any]
        try:
            output = handling.result()
            if isinstance(output, BaseModel):
                output = output.model_dump(mode="json", by_alias=True)
            json.dumps(output, ensure_ascii=False, allow_nan=False).encode()  # an output without a JSON form fails the attempt
            result = {"status": "COMPLETED"} | ({} if output is None else {"output": output})
        except Outcome as outcome:
            result = outcome.result
        except (Exception, asyncio.CancelledError) as error:
            if attempt.reason == "stop":
                result = {"status": "SNOOZED", "delayMs": 1}  # it runs again, which costs no retry
            else:
                result = {"status": "FAILED", "message": clean(str(error) or type(error).__name__, 4096)}
                if attempt.reason == "deadline":
                    result["errorCode"] = "WORKER.TIMEOUT"
                if attempt.reason is None:
                    logger.exception("attempt %d of job %s failed", attempt.number, attempt.job_id)
        if not held.lost:
            held.settling = True
            await self._settle(held, result)

    def _handle(self, held: _Held) -> asyncio.Task[Any]:
        handler = self._handlers[held.attempt.job_type] if held.attempt.reason is None else _give_back
        if not inspect.iscoroutinefunction(handler):
            return asyncio.create_task(_in_thread(handler, held.attempt))
        task: asyncio.Task[Any] = asyncio.create_task(handler(held.attempt))
        held.cancel = task.cancel
        return task

    async def _settle(self, held: _Held, result: dict[str, Any]) -> None:
        """Sends a result, after its log, until it is stored or refused."""
        while (held.attempt._progress or held.attempt._lines) and await self._beat([held]):
            pass
        failed, replaced = 0, False
        while True:
            status, why = await self._send("/api/workers/settle", "results", {"token": held.token, **result})
            if status == 200:
                return
            if _is_passing(status) and time.monotonic() - held.alive < LOST_AFTER:
                await asyncio.sleep(backoff(failed))
                failed += 1
            elif status in (400, 413) and not replaced:
                message = clean(why, 4096)
                result = {"status": "FAILED", "errorCode": "WORKER.INVALID_OUTPUT", "message": message, "retryable": False}
                replaced = True
            else:
                attempt = held.attempt
                logger.warning(
                    "the result of attempt %d of job %s was refused: %d: %s", attempt.number, attempt.job_id, status, why
                )
                return

    async def _save(self, held: _Held, number: int, checkpoint: Any) -> None:
        """Stores a checkpoint. It sends it again until there is an answer, or the attempt is over."""
        failed = 0
        while not held.lost and not held.settling:
            body = {"token": held.token, "number": number, "checkpoint": checkpoint}
            status, why = await self._send("/api/workers/checkpoint", "checkpoints", body)
            if status == 200:
                return
            if status == 400:
                raise NotRetryable(f"the checkpoint cannot be stored: {why}", error_code="WORKER.INVALID_OUTPUT")
            if status == 409:
                held.end("lost")
            elif not _is_passing(status):
                raise JobWeaverError(f"a checkpoint was refused: {status}: {why}")
            else:
                await asyncio.sleep(backoff(failed))
                failed += 1
        raise InterruptedError("the attempt is over: it saves no checkpoint")

    async def _send(self, path: str, entries: str, entry: dict[str, Any]) -> tuple[int, str]:
        body = {"worker": self.name, entries: [entry]}
        try:
            async with asyncio.timeout(20):
                answer = await self._client.request("POST", path, json=body)
            settled = models.WorkSettled.model_validate_json(answer.content).results[0]
        except FAILURES as error:
            unknown = 0 if isinstance(error, ClientClosed) else 503
            return (error.status if isinstance(error, ApiError) else unknown), str(error)
        refused = settled.error
        return settled.status, "; ".join([refused.message, *(f"{d.path} {d.message}" for d in refused.details)]) if refused else ""

    async def _beats(self) -> None:
        failed, pause = 0, self._every
        while True:
            await asyncio.sleep(pause)
            held = [one for one in self._held.values() if not one.lost]
            if not held or await self._beat(held):
                failed, pause = 0, self._every
            else:
                failed, pause = failed + 1, min(backoff(failed), self._every)

    async def _beat(self, all_held: Sequence[_Held]) -> bool:
        async with self._beating:  # one at a time, so that log lines keep their order
            return await self._send_beat(all_held)

    async def _send_beat(self, all_held: Sequence[_Held]) -> bool:
        sent, room, parts = time.monotonic(), BEAT_BYTES, []

        def fits(part: dict[str, Any]) -> bool:
            nonlocal room
            room -= len(json.dumps(part, ensure_ascii=False).encode()) + 2
            return room >= 0

        for held in all_held:
            part: dict[str, Any] = {"token": held.token}
            if (progress := held.attempt._progress) and fits(progress):
                part["progress"] = progress
            part["log"] = []
            for line in held.attempt._lines[:LINES_IN_BEAT]:
                if not fits(line):
                    break
                part["log"].append(line)
            parts.append(part)

        def carried() -> None:
            for held, part in zip(all_held, parts, strict=True):
                del held.attempt._lines[: len(part["log"])]
                if held.attempt._progress is part.get("progress"):
                    held.attempt._progress = None

        try:
            body = {"worker": self.name, "attempts": parts}
            async with asyncio.timeout(5):
                answer = await self._client.request("POST", "/api/workers/beat", json=body)
            beaten = models.WorkBeaten.model_validate_json(answer.content)
        except FAILURES as error:
            if not _is_temporary(error):
                carried()  # a refused line must not stop the heartbeats
            logger.warning("a beat failed: %s", error or "no answer in time")
            for held in all_held:
                if sent - held.alive >= LOST_AFTER:
                    held.end("lost")
            return False
        carried()
        lost, cancelled = {token.root for token in beaten.lost}, {token.root for token in beaten.cancelled}
        for held in all_held:
            if held.token in lost:
                held.end("lost")
                continue
            held.alive = sent
            if held.token in cancelled:
                held.end("cancelled")
        return True


async def _give_back(attempt: Attempt) -> None:
    raise asyncio.CancelledError(attempt.reason)


async def _in_thread(handler: Handler, attempt: Attempt) -> Any:
    """Like asyncio.to_thread, but with a daemon thread: the process can end even if a handler does not."""
    loop, ended, future = asyncio.get_running_loop(), asyncio.Event(), Future[Any]()

    def run() -> None:
        try:
            future.set_result(handler(attempt))
        except Exception as error:
            future.set_exception(error)
        except BaseException as error:  # sys.exit() ends the attempt, not the worker
            future.set_exception(RuntimeError(f"the handler ended with {error!r}"))
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=contextvars.copy_context().run, args=(run,), daemon=True).start()
    await ended.wait()
    return future.result()


def _is_passing(status: int) -> bool:
    return status >= 500 or status in (408, 429)


def _is_temporary(error: Exception) -> bool:
    return _is_passing(error.status) if isinstance(error, ApiError) else isinstance(error, GatewayUnreachable | TimeoutError)
