"""Handlers that block, on a gateway with a network and a thread of its own."""

import asyncio
import json
import logging
import threading
import time
import uuid
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from test_worker import play, working

from jobweaver import AsyncClient, Attempt, Worker


class Threaded:
    """A gateway that answers while the event loop of the test stands still."""

    def __init__(self) -> None:
        self.changes = threading.Condition()
        self.offered: list[dict[str, Any]] = []
        self.heartbeats: list[tuple[str, float]] = []
        self.results: list[dict[str, Any]] = []
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                answer = gateway.answer(self.path.rsplit("/", 1)[1], body, self)
                data = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self) -> "Threaded":
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.server.shutdown()
        self.server.server_close()

    def offer(self, token: str, job_type: str) -> None:
        ids = {"jobId": str(uuid.uuid4()), "traceId": str(uuid.uuid4()), "token": token, "ownerId": None, "tags": None}
        deadline = (datetime.now(UTC) + timedelta(minutes=1)).isoformat()
        own = {"attempt": 1, "jobType": job_type, "queue": "pull", "payload": {}, "callback": None, "deadline": deadline}
        with self.changes:
            self.offered.append(ids | own)
            self.changes.notify_all()

    def answer(self, what: str, body: dict[str, Any], handler: BaseHTTPRequestHandler) -> Any:
        with self.changes:
            self.changes.notify_all()
            if what == "heartbeat":
                self.heartbeats += [(each["token"], time.monotonic()) for each in body["attempts"]]
                return {"lost": [], "cancelled": []}
            if what == "settle":
                self.results += body["results"]
                return {"results": [{"token": result["token"], "status": 200} for result in body["results"]]}
            while not self.offered:
                self.changes.wait(0.05)
                handler.connection.setblocking(False)
                try:
                    gone = handler.connection.recv(1) == b""
                except BlockingIOError:
                    gone = False
                handler.connection.setblocking(True)
                if gone:
                    return {"attempts": []}
            given, self.offered = self.offered[: body["slots"]], self.offered[body["slots"] :]
            return {"attempts": given}

    def until_settled(self, count: int) -> None:
        with self.changes:
            assert self.changes.wait_for(lambda: len(self.results) >= count, 30)


def test_a_handler_that_blocks_the_event_loop_loses_neither_itself_nor_its_neighbours(caplog: pytest.LogCaptureFixture) -> None:
    ends: list[str] = []
    blocked: list[float] = []
    started = threading.Event()

    with Threaded() as gateway:
        worker = Worker(AsyncClient(gateway.url), concurrency=5, heartbeat=0.4)

        @worker.handler("BLOCK")
        async def block(_: Attempt) -> None:
            blocked.append(time.monotonic())
            time.sleep(4.5)  # noqa: ASYNC251
            blocked.append(time.monotonic())
            ends.append("block")

        @worker.handler("NEIGHBOUR")
        async def neighbour(attempt: Attempt) -> None:
            started.set()
            await asyncio.sleep(0.1)
            ends.append("neighbour")

        with worker:
            gateway.offer("neighbour", "NEIGHBOUR")
            assert started.wait(30)
            gateway.offer("block", "BLOCK")
            time.sleep(3)
            gateway.offer("offered meanwhile", "NEIGHBOUR")
            gateway.until_settled(3)
    for token in ("neighbour", "block"):
        within = [at for of, at in gateway.heartbeats if of == token and blocked[0] < at < blocked[1]]
        assert len(within) >= 4, f"{len(within)} heartbeats of {token} while the event loop stood still"
    assert sorted(ends) == ["block", "neighbour", "neighbour"]
    assert all(result["status"] == "COMPLETED" for result in gateway.results)
    assert not [at for of, at in gateway.heartbeats if of == "offered meanwhile" and at < blocked[1]]
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1, warnings
    assert "stood still for 3 s: the handler of BLOCK blocks it" in warnings[0]


def test_a_blocking_coroutine_holds_up_nothing_and_ends_in_each_way() -> None:
    reasons: list[str | None] = []

    async def handle(attempt: Attempt) -> Any:
        if attempt.payload == "block":
            attempt.cancelled.wait()  # not await: its event loop stands still
            return attempt.reason
        if attempt.payload == "wait":
            try:
                await asyncio.sleep(60)
            finally:
                reasons.append(attempt.reason)
        await attempt.asave({"page": 1})
        return await attempt.astep("one", lambda: 7)

    async def main() -> None:
        async with working(lambda _: None, concurrency=3) as (gateway, worker, _):
            worker.handler("A", blocking=True)(handle)
            await gateway.offer("block")
            await gateway.offer("wait")
            await gateway.until(lambda: {"block", "wait"} <= {heartbeat["token"] for heartbeat in gateway.heartbeats})
            await gateway.offer("plain")
            await gateway.until(lambda: len(gateway.results) == 1)
            assert gateway.results[0] == {"token": "plain", "status": "COMPLETED", "output": 7}
            gateway.cancelled += ["block", "wait"]
            await gateway.until(lambda: len(gateway.results) == 3)
            got = {result["token"]: (result["status"], result.get("output")) for result in gateway.results}
            assert got == {"plain": ("COMPLETED", 7), "block": ("COMPLETED", "cancelled"), "wait": ("FAILED", None)}

    play(main)
    assert reasons == ["cancelled"]
