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
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar
from uuid import UUID

import httpx

from . import models
from ._checkpoint import Checkpoint, KeptStep, NewStep, Store
from ._json import json_of
from ._steps import backoff
from ._together import Answer, Together
from .attempt import AbortReason, Attempt, NotRetryable, Outcome, clean, to_its_end
from .client import AsyncClient
from .errors import ApiError, ClientClosed, GatewayUnreachable, JobWeaverError
from .task import AsyncTask, Task

Handler: TypeAlias = Callable[[Attempt], Any]
H = TypeVar("H", bound=Handler)
T = TypeVar("T")

logger = logging.getLogger("jobweaver.worker")

HOLD = 10.0  # of a claim: only its end shows that the gateway stands still
LATE = 10.0  # for the answer after that
LOST_AFTER = 10.0  # without an answered heartbeat; 5 s later the next attempt may start
LAST_ANSWER = 0.5  # for the response to the open claim when the worker stops
STILL = 2.0  # seconds that an event loop stands still before nothing more is claimed for it
WARNED = 3.0  # likewise, before a warning names the handler
LOOK = 0.25  # seconds between two looks at it
MOST_SNOOZE = 30.0  # of an attempt whose job still runs
MAX_OUTPUT = 262_144  # bytes
LINES_IN_HEARTBEAT = 200  # of one attempt
FAILURES = (JobWeaverError, httpx.HTTPError, TimeoutError, ValueError)  # of a request, or of a response that cannot be parsed
HEARTBEAT_BYTES = 800_000  # of progress and lines; with the tokens a heartbeat stays below its limit


class _Held:
    """An attempt of the worker, from its claim until its result is stored and its handler has ended."""

    def __init__(self, attempt: Attempt, token: str) -> None:
        self.attempt, self.token = attempt, token
        self.alive = time.monotonic()  # when the last answered heartbeat was sent
        self.over = 0.0  # when its handler was first to end
        self.settling = False
        self.gone = asyncio.Event()  # it is lost
        self.cancel: Callable[[], object] = lambda: None  # of an asyncio handler

    def keep(self, saved: Any, loop: asyncio.AbstractEventLoop, store: Store) -> None:
        """Gives the attempt its checkpoint and its steps."""
        attempt = self.attempt
        attempt._kept, attempt._loop = Checkpoint(saved, attempt.attempt, store), loop
        attempt.checkpoint = attempt._kept.own

    @property
    def has_news(self) -> bool:
        return bool(self.attempt._progress or self.attempt._lines)

    @property
    def lost(self) -> bool:
        return self.gone.is_set()

    def end(self, reason: AbortReason) -> None:
        if self.settling:
            return
        if reason == "lost":
            self.gone.set()
        self.over = self.over or time.monotonic()
        if not self.attempt.cancelled.is_set():
            self.attempt.reason = reason
            self.attempt.cancelled.set()
            self.cancel()

    async def end_of_steps(self) -> None:
        """Waits for the steps that the handler has left running, unless the attempt is lost.

        They are cancelled as the handler would be. It runs in the event loop of the worker.
        """
        if not (running := self.attempt._kept.close()):
            return

        def cancel() -> None:
            for step in running:
                step.cancel()

        self.cancel = cancel
        if self.attempt.cancelled.is_set():
            cancel()
        steps = asyncio.create_task(asyncio.wait([asyncio.wrap_future(step.over) for step in running]))
        gone = asyncio.create_task(self.gone.wait())
        await asyncio.wait({steps, gone}, return_when=asyncio.FIRST_COMPLETED)
        steps.cancel()
        gone.cancel()


@dataclass(frozen=True)
class _Stored:
    """Where the gateway keeps the checkpoint and the steps of an attempt's job."""

    worker: Worker
    held: _Held

    async def save(self, number: int, checkpoint: str, /) -> None:
        await self.worker._save(self.held, number, checkpoint)

    async def save_step(self, step: NewStep, /) -> KeptStep:
        members: dict[str, Any] = {"name": step.name}
        if step.until is not None:
            members["until"] = step.until.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if step.took is not None:
            members["tookMs"] = round(step.took * 1000)
        result = "" if step.result is None else f',"result":{step.result}'
        return _kept(json.loads(await self.worker._post(self.held, "steps", f"{_members(members)}{result}")))

    async def read_steps(self) -> list[KeptStep]:
        steps: list[KeptStep] = []
        after = None
        while True:
            page = json.loads(await self.worker._post(self.held, "steps/read", _members({"after": after})))
            steps += map(_kept, page["steps"])
            if (after := page["next"]) is None:
                return steps


class Worker:
    """Claims attempts, runs their handlers and settles them, until it is stopped. It runs once.

    It runs `tasks`, which it describes to the gateway when it starts, and the functions of handler().
    `concurrency` is how many attempts run at once, from 1 to 500. It takes attempts of `queues`; without them, of all that its key
    covers. Each worker has another `name`, by default made of the host's. After stop() running attempts go on for `grace` seconds
    before they are cancelled. A heartbeat is sent every `heartbeat` seconds; without one for 10 s an attempt is lost.

    A handler that is a coroutine function runs in the caller's event loop, any other in a thread of its own. The worker itself
    has a thread, from which it claims, sends heartbeats and settles: a handler that blocks the event loop loses no attempt.
    run() and `with` make an event loop and close the client at their end; serve() and `async with` run handlers in the caller's.
    The body of `with` and `async with` begins when the gateway knows the tasks, so that their jobs are accepted.
    """

    def __init__(
        self,
        client: AsyncClient,
        *,
        tasks: Sequence[Task[Any, Any] | AsyncTask[Any, Any]] = (),
        concurrency: int = 10,
        queues: Sequence[str] = (),
        name: str | None = None,
        grace: float = 25.0,
        heartbeat: float = 3.0,
    ) -> None:
        if not 1 <= concurrency <= 500:
            raise ValueError("concurrency must be from 1 to 500")
        self.name = name or f"{socket.gethostname()[:100]}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._client, self._concurrency, self._queues = client, concurrency, list(queues)
        self._grace, self._every = grace, heartbeat
        self._handlers: dict[str, Handler] = {}
        self._blocking: set[str] = set()  # job types
        self._described = list(tasks)
        for task in tasks:
            self.handler(task.job_type)(task.handler)
        self._held: dict[asyncio.Task[None], _Held] = {}
        self._running: dict[UUID, _Held] = {}  # by job, while its handler runs
        self._tasks: dict[asyncio.Task[Any], str] = {}  # of coroutines in the caller's event loop, with their job types
        self._blockers: set[str] = set()  # job types of which the user was warned
        self._stopped = self._served = self._still = False
        # Why a thread: docs/decisions/workers.md#worker-kits-send-heartbeats-from-a-thread-and-run-a-job-once-at-a-time
        self._loop: asyncio.AbstractEventLoop | None = None  # of the worker's thread, while it runs
        self._thread: Future[None] | None = None
        self._ready = Future[None]()  # the gateway knows the tasks
        self._task: asyncio.Task[None] | None = None

    def handler(self, job_type: str, *, blocking: bool = False) -> Callable[[H], H]:
        """Decorates the function that runs attempts of a job type. It takes an Attempt and returns the output.

        With blocking=True a coroutine function has a thread and an event loop of its own for each attempt, so that it may block.
        """

        def register(handler: H) -> H:
            if job_type in self._handlers and any(task.job_type == job_type for task in self._described):
                raise ValueError(f"two handlers are of the job type {job_type}")
            self._handlers[job_type] = handler
            if blocking:
                self._blocking.add(job_type)
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
        wait((self._thread, self._ready), return_when=FIRST_COMPLETED)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
        if self._thread is not None:
            self._thread.result()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self.serve())
        await asyncio.wait({self._task, asyncio.wrap_future(self._ready)}, return_when=asyncio.FIRST_COMPLETED)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
        if self._task is not None:
            await self._task

    async def serve(self) -> None:
        """Runs attempts like run(), with the caller's event loop for coroutines. If its task is cancelled, it stops like stop()."""
        if not self._handlers:
            raise ValueError("a worker needs a handler")
        if self._served:
            raise RuntimeError("a worker runs once")
        self._callers, self._context, ended = asyncio.get_running_loop(), contextvars.copy_context(), asyncio.Event()
        loop, future = asyncio.new_event_loop(), Future[None]()
        self._served, client = True, self._client._in_another_loop(loop)

        def work() -> None:
            try:
                with asyncio.Runner(loop_factory=lambda: loop) as runner:
                    future.set_result(runner.run(self._work(client)))
            except BaseException as error:
                future.set_exception(error)
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._callers.call_soon_threadsafe(ended.set)

        threading.Thread(target=work, name="jobweaver-worker", daemon=True).start()
        cancelled = None
        while not ended.is_set():
            try:
                await ended.wait()
            except asyncio.CancelledError as error:
                cancelled = error
                self.stop()
        if cancelled is not None:
            future.exception()  # else it is never retrieved
            raise cancelled
        future.result()

    async def _work(self, client: AsyncClient) -> None:
        """Claims, sends heartbeats and settles, in the event loop of the worker's thread."""
        self._client, self._stopping, self._sending = client, asyncio.Event(), asyncio.Lock()
        self._settling = Together(lambda entries: self._send("settle", "results", entries))
        self._saving = Together(lambda entries: self._send("checkpoint", "checkpoints", entries))
        self._loop = asyncio.get_running_loop()  # from now on stop() sets the event; before, it set a flag
        if self._stopped:
            self._stopping.set()
        stop, heartbeats, watch = (asyncio.create_task(each) for each in (self._stopping.wait(), self._heartbeats(), self._watch()))
        try:
            async with client:
                try:
                    for described in self._described:
                        await self._persist(stop, partial(self._describe, described), f"describe the task {described.job_type}")
                    self._ready.set_result(None)
                    await self._claims(stop)
                finally:
                    self._stopping.set()
                    if self._held:
                        await asyncio.wait(self._held, timeout=self._grace)
                    for held in self._held.values():
                        held.end("stop")
                    if self._held:
                        await asyncio.wait(self._held)  # while a handler runs, its attempt must not start elsewhere
        finally:
            for task in (stop, heartbeats, watch):
                task.cancel()
            await asyncio.wait({stop, heartbeats, watch})

    async def _watch(self) -> None:
        """Looks whether the event loop of the caller turns, if there are handlers in it."""
        if not any(inspect.iscoroutinefunction(h) and t not in self._blocking for t, h in self._handlers.items()):
            return
        turned = time.monotonic()

        def turn() -> None:
            nonlocal turned
            turned = time.monotonic()

        while True:
            self._callers.call_soon_threadsafe(turn)
            await asyncio.sleep(LOOK)
            still = time.monotonic() - turned
            self._still = still >= STILL
            if still >= WARNED:
                self._warn()

    def _warn(self) -> None:
        now = asyncio.current_task(self._callers)
        types = [self._tasks[now]] if now in self._tasks else sorted(set(self._tasks.values()))
        if not types or self._blockers.intersection(types):
            return
        self._blockers.update(types)
        who = f"the handler of {types[0]}" if len(types) == 1 else f"handlers of {', '.join(types)} run, one of which"
        what = f"the event loop has stood still for {WARNED:.0f} s: {who} blocks it"
        logger.warning("%s; make it a plain function, or register it with blocking=True", what)

    async def _persist(self, stop: asyncio.Task[Any], send: Callable[[], Coroutine[Any, Any, T]], what: str) -> T | None:
        """Sends a request until it is answered. It raises what will not pass, and returns nothing when the worker stops."""
        failed = 0
        while not stop.done():
            sent = asyncio.create_task(send())
            try:
                await asyncio.wait({stop, sent}, return_when=asyncio.FIRST_COMPLETED)
                if not (await asyncio.wait({sent}, timeout=LAST_ANSWER))[0]:
                    break
                return sent.result()
            except JobWeaverError as error:
                if not _is_temporary(error):
                    raise
                logger.warning("cannot %s: %s", what, error)
                await asyncio.wait({stop}, timeout=_pause(failed, error))
                failed += 1
            finally:
                sent.cancel()
        return None

    async def _describe(self, task: Task[Any, Any] | AsyncTask[Any, Any]) -> None:
        """Sends the definition of a task, so that the gateway accepts and checks its jobs, and its schedules."""
        path = f"/api/job-types/{task.job_type}"
        await self._client.request("PUT", path, json=task.definition)
        await self._client.request("PUT", path + "/schedules", json={"schedules": task.schedules})

    async def _claims(self, stop: asyncio.Task[Any]) -> None:
        wait = min(HOLD, (self._client.timeout or 2 * HOLD) / 2)
        asked = {"worker": self.name, "types": list(self._handlers), "queues": self._queues, "wait": f"{int(wait * 1000)}ms"}
        early = 0
        while not stop.done():
            if len(self._held) == self._concurrency:
                await asyncio.wait({stop, *self._held}, return_when=asyncio.FIRST_COMPLETED)
                continue
            if self._still:  # attempts would have to wait
                await asyncio.wait({stop}, timeout=LOOK)
                continue
            begin = time.monotonic()
            answer = await self._persist(stop, lambda: self._claim(asked, wait + LATE), "claim attempts")
            if answer is None:
                continue
            attempts = models.WorkAttempts.model_validate_json(answer.content).attempts if answer.content else []
            for attempt in attempts:
                self._start(attempt, answer)
            at_once = not attempts and time.monotonic() - begin < wait / 2  # as a stopping instance answers
            # Without a pause further claims would ask for the first slot that is free, one after another.
            await asyncio.wait({stop}, timeout=backoff(early) if at_once else 0.0)
            early = early + 1 if at_once else 0

    async def _claim(self, asked: dict[str, Any], within: float) -> httpx.Response | None:
        """Claims attempts, and gives up when the event loop of the caller stands still, or the gateway."""
        slots = self._concurrency - len(self._held)
        end = time.monotonic() + within
        claim = asyncio.create_task(self._client.request("POST", "/api/workers/claim", json=asked | {"slots": slots}))
        try:
            while not claim.done() and not self._still:
                await asyncio.wait({claim}, timeout=LOOK)
                if not claim.done() and time.monotonic() >= end:
                    raise GatewayUnreachable(f"the claim is not answered within {within:g} s")
            return claim.result() if claim.done() else None
        finally:
            claim.cancel()

    def _start(self, claimed: models.WorkAttempt, answer: httpx.Response) -> None:
        shared = Attempt.__dataclass_fields__.keys() & models.WorkAttempt.model_fields.keys()
        members = {name: getattr(claimed, name) for name in shared} | {"parents": claimed.parents or []}
        held = _Held(Attempt(**members), claimed.token)
        held.keep(claimed.checkpoint, asyncio.get_running_loop(), _Stored(self, held))
        held.attempt._ask = lambda waits: self._ask(held, waits)
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
        result = await self._result_of(held)
        deadline.cancel()
        attempt._closed = True
        if not held.lost:
            held.settling = True
            await self._settle(held, result)

    async def _result_of(self, held: _Held) -> str:
        """Runs the handler, and returns the result as JSON without the token."""
        attempt = held.attempt
        if other := self._running.get(attempt.job_id):
            attempt.log(f"{self.name} still runs attempt {other.attempt.attempt} of this job: this one is given back", "warn")
            delay = min(MOST_SNOOZE, max(1.0, time.monotonic() - (other.over or time.monotonic())))
            return _members({"status": "SNOOZED", "delayMs": round(delay * 1000)})  # no retry is counted
        self._running[attempt.job_id] = held
        try:
            output = await self._handle(held)
            if output is None:
                return _members({"status": "COMPLETED"})
            return f'"status":"COMPLETED","output":{_bounded(json_of(output, "output", "the output"))}'
        except Outcome as outcome:
            return _members(outcome.result)
        except (Exception, asyncio.CancelledError) as error:
            if attempt.reason == "stop":
                return _members({"status": "SNOOZED", "delayMs": 1})  # it runs again, which costs no retry
            if attempt.reason is None:
                logger.exception("attempt %d of job %s failed", attempt.attempt, attempt.job_id)
            late = {"errorCode": "WORKER.TIMEOUT"} if attempt.reason == "deadline" else {}
            return _members({"status": "FAILED", "message": clean(str(error) or type(error).__name__, 4096)} | late)
        finally:
            del self._running[attempt.job_id]

    async def _handle(self, held: _Held) -> Any:
        attempt = held.attempt
        if attempt.reason is not None:
            raise asyncio.CancelledError(attempt.reason)  # it is given back
        handler = self._handlers[attempt.job_type]
        try:
            if not inspect.iscoroutinefunction(handler):
                return await self._in_thread(lambda: handler(attempt))
            if attempt.job_type in self._blocking:
                return await self._in_thread(lambda: _in_own_loop(handler, held))
            return await self._in_callers_loop(handler, held)
        finally:
            await held.end_of_steps()

    async def _in_callers_loop(self, handler: Handler, held: _Held) -> Any:
        loop, ended, task = asyncio.get_running_loop(), asyncio.Event(), asyncio.Future[asyncio.Task[Any]]()

        def end(_: object) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(ended.set)

        def begin() -> None:
            made = self._callers.create_task(handler(held.attempt), context=self._context.copy())
            self._tasks[made] = held.attempt.job_type
            made.add_done_callback(self._tasks.pop)
            made.add_done_callback(end)
            held.cancel = lambda: self._callers.call_soon_threadsafe(made.cancel)
            if held.attempt.cancelled.is_set():
                made.cancel()
            loop.call_soon_threadsafe(task.set_result, made)

        self._callers.call_soon_threadsafe(begin)
        await ended.wait()
        return (await task).result()

    async def _in_thread(self, handler: Callable[[], Any]) -> Any:
        """Like asyncio.to_thread, but with a daemon thread: the process can end even if a handler does not."""
        loop, ended, future = asyncio.get_running_loop(), asyncio.Event(), Future[Any]()

        def run() -> None:
            try:
                future.set_result(handler())
            except (Exception, asyncio.CancelledError) as error:
                future.set_exception(error)
            except BaseException as error:  # sys.exit() ends the attempt, not the worker
                future.set_exception(RuntimeError(f"the handler ended with {error!r}"))
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(ended.set)

        threading.Thread(target=self._context.copy().run, args=(run,), daemon=True).start()
        await ended.wait()
        return future.result()

    async def _settle(self, held: _Held, result: str) -> None:
        """Sends a result, after its log, until it is stored or refused."""
        while held.has_news and await self._heartbeat(held):
            pass
        failed, replaced = 0, False
        while True:
            status, why = await self._settling.add(f'{{"token":{json.dumps(held.token)},{result}}}')
            if status == 200:
                return
            if _is_passing(status) and time.monotonic() - held.alive < LOST_AFTER:
                await asyncio.sleep(backoff(failed))
                failed += 1
            elif status in (400, 413) and not replaced:
                message, replaced = clean(why, 4096), True
                result = _members(NotRetryable(message, error_code="WORKER.INVALID_OUTPUT").result)
            else:
                attempt = held.attempt
                logger.warning(
                    "the result of attempt %d of job %s was refused: %d: %s", attempt.attempt, attempt.job_id, status, why
                )
                return

    async def _save(self, held: _Held, number: int, checkpoint: str) -> None:
        """Stores a checkpoint. It sends it again until there is an answer, or the attempt is over."""
        failed = 0
        entry = f'{{"token":{json.dumps(held.token)},"number":{number},"checkpoint":{checkpoint}}}'
        while not held.lost and not held.settling:
            status, why = await self._saving.add(entry)
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

    async def _ask(self, held: _Held, waits: list[dict[str, Any]]) -> models.WorkWaitAnswer:
        """Asks how waits stand."""
        return models.WorkWaitAnswer.model_validate_json(await self._post(held, "wait", _members({"waits": waits})))

    async def _post(self, held: _Held, path: str, members: str) -> bytes:
        """Sends members about an attempt, which are JSON already, until there is an answer, or the attempt is over."""
        failed = 0
        content = f'{{"worker":{json.dumps(self.name)},"token":{json.dumps(held.token)},{members}}}'
        while not held.lost and not held.settling:
            try:
                async with asyncio.timeout(20):
                    answer = await self._client.request("POST", f"/api/workers/{path}", content=content)
                return answer.content
            except FAILURES as error:
                if isinstance(error, ApiError) and error.error_code == "API.ATTEMPT_OVER":
                    held.end("lost")
                elif not _is_temporary(error):
                    code = error.error_code if isinstance(error, ApiError) else None
                    raise NotRetryable(str(error), error_code=code) from error
                else:
                    await asyncio.sleep(backoff(failed))
                    failed += 1
        raise InterruptedError("the attempt is over: it saves nothing, and waits for nothing")

    async def _send(self, path: str, name: str, entries: Sequence[str]) -> list[Answer]:
        """Sends results or checkpoints, which are JSON already, and returns an answer for each."""
        content = f'{{"worker":{json.dumps(self.name)},"{name}":[{",".join(entries)}]}}'
        try:
            async with asyncio.timeout(20):
                answer = await self._client.request("POST", f"/api/workers/{path}", content=content)
            settled = models.WorkSettled.model_validate_json(answer.content).results
            return [_answer(settled[i]) for i in range(len(entries))]
        except (*FAILURES, IndexError) as error:
            unknown = 0 if isinstance(error, ClientClosed) else 503
            return [((error.status if isinstance(error, ApiError) else unknown), str(error))] * len(entries)

    async def _heartbeats(self) -> None:
        failed, pause = 0, self._every
        while True:
            await asyncio.sleep(pause)
            if await self._heartbeat():
                failed, pause = 0, self._every
            else:
                failed, pause = failed + 1, min(backoff(failed), self._every)

    async def _heartbeat(self, only: _Held | None = None) -> bool:
        """Heartbeats for all attempts. With `only`, it does nothing unless that attempt has news by then."""
        async with self._sending:  # one at a time, so that log lines keep their order
            held = [one for one in self._held.values() if not one.lost]
            return not held or (only is not None and not only.has_news) or await self._send_heartbeat(held)

    async def _send_heartbeat(self, all_held: Sequence[_Held]) -> bool:
        sent, room, parts = time.monotonic(), HEARTBEAT_BYTES, []

        def fits(part: dict[str, Any]) -> bool:
            nonlocal room
            room -= len(json.dumps(part, ensure_ascii=False).encode()) + 2
            return room >= 0

        for held in all_held:
            part: dict[str, Any] = {"token": held.token}
            if (progress := held.attempt._progress) and fits(progress):
                part["progress"] = progress
            part["log"] = []
            for line in held.attempt._lines[:LINES_IN_HEARTBEAT]:
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
                response = await self._client.request("POST", "/api/workers/heartbeat", json=body)
            answer = models.WorkHeartbeatAnswer.model_validate_json(response.content)
        except FAILURES as error:
            if not _is_temporary(error):
                carried()  # a refused line must not stop the heartbeats
            logger.warning("a heartbeat failed: %s", error or "no answer in time")
            for held in all_held:
                if sent - held.alive >= LOST_AFTER:
                    held.end("lost")
            return False
        carried()
        lost, cancelled = {token.root for token in answer.lost}, {token.root for token in answer.cancelled}
        for held in all_held:
            if held.token in lost:
                held.end("lost")
                continue
            held.alive = sent
            if held.token in cancelled:
                held.end("cancelled")
        return True


def _in_own_loop(handler: Handler, held: _Held) -> Any:
    async def run() -> Any:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        held.cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        if held.attempt.cancelled.is_set():
            task.cancel()
        try:
            return await handler(held.attempt)
        finally:
            held.cancel = lambda: None
            with contextlib.suppress(asyncio.CancelledError):  # it came too late for the handler
                await to_its_end(held.attempt._there(held.end_of_steps()))  # else asyncio.run() would cancel the steps

    return asyncio.run(run())


def _kept(step: dict[str, Any]) -> KeptStep:
    until = step.get("until")
    return KeptStep(step["name"], step.get("result"), datetime.fromisoformat(until) if until else None)


def _members(result: dict[str, Any]) -> str:
    """The members of an object, as JSON."""
    return json.dumps(result, ensure_ascii=False, separators=(",", ":"))[1:-1]


def _bounded(output: str) -> str:
    size = len(output.encode())
    if size > MAX_OUTPUT:
        text = f"the output has {size} bytes, {MAX_OUTPUT} are allowed"
        raise NotRetryable(text, error_code="WORKER.OUTPUT_TOO_LARGE")
    return output


def _answer(settled: Any) -> Answer:
    if (refused := settled.error) is None:
        return settled.status, ""
    details = [f"{detail.path} {detail.message}" for detail in refused.details]
    return settled.status, "; ".join([refused.message, *(detail for detail in details if detail not in refused.message)])


def _is_passing(status: int) -> bool:
    return status >= 500 or status in (408, 429)


def _pause(failed: int, error: JobWeaverError) -> float:
    """How long to wait after so many failures; the gateway may have asked for longer."""
    return max(backoff(failed), (isinstance(error, ApiError) and error.retry_after) or 0)


def _is_temporary(error: Exception) -> bool:
    return _is_passing(error.status) if isinstance(error, ApiError) else isinstance(error, GatewayUnreachable | TimeoutError)
