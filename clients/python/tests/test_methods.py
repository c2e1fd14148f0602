"""Every operation of the contract has a method, or stands in clients/methods.json with the reason why it has none."""

import json as jsonlib
import operator
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import ID, Both, Gateway, json

from jobweaver import (
    AlertRequest,
    BatchRequest,
    Filter,
    FlowJobRequest,
    FlowRequest,
    JobChange,
    JobRequest,
    NotFound,
    ScheduleRequest,
)

ROOT = Path(__file__).parents[3]
JOB = JobRequest(job_type="A", payload=1)
ALERT = AlertRequest.model_validate({"name": "n", "to": {"email": ["a@example.org"]}})
SCHEDULE = ScheduleRequest(name="n", cron="@daily", job=JOB)

CALLS: dict[str, Callable[[Any], Any]] = {
    "submit": lambda c: c.submit(JOB),
    "list": lambda c: c.list(),
    "submit_batch": lambda c: c.submit_batch([JOB]),
    "get": lambda c: c.get(ID),
    "change": lambda c: c.change(ID, JobChange(priority=1)),
    "delete": lambda c: c.delete(ID),
    "logs": lambda c: c.logs(ID),
    "cancel": lambda c: c.cancel(ID),
    "retry": lambda c: c.retry(ID),
    "reschedule": lambda c: c.reschedule(ID, datetime.now(UTC)),
    "run_again": lambda c: c.run_again(ID),
    "callback": lambda c: c.callback("s", ID, 1, "COMPLETED", output=1),
    "send_event": lambda c: c.send_event("/shop", "paid", 1),
    "stream": lambda c: c.stream(ID),
    "dead.list": lambda c: c.dead.list(Filter(type="A")),
    "dead.groups": lambda c: c.dead.groups(type="A"),
    "deliveries.of_job": lambda c: c.deliveries.of_job(ID),
    "deliveries.retry": lambda c: c.deliveries.retry(ID, 4),
    "deliveries.list": lambda c: c.deliveries.list(status="FAILED"),
    "audit.list": lambda c: c.audit.list(job_id=ID),
    "controls.list": lambda c: c.controls.list(),
    "controls.get": lambda c: c.controls.get("queue", "a/b"),
    "controls.set": lambda c: c.controls.set("queue", "q", max_running=5),
    "controls.delete": lambda c: c.controls.delete("type", "A"),
    "controls.pause": lambda c: c.controls.pause("owner", "o"),
    "controls.resume": lambda c: c.controls.resume("fairnessKey", "*"),
    "queues.list": lambda c: c.queues.list(),
    "queues.get": lambda c: c.queues.get("q"),
    "queues.create": lambda c: c.queues.create("q"),
    "queues.remove": lambda c: c.queues.remove("q", drain=True),
    "queues.shares": lambda c: c.queues.shares("q", q="k"),
    "operations.start": lambda c: c.operations.start("cancel", which=Filter(type="A")),
    "operations.list": lambda c: c.operations.list(),
    "operations.get": lambda c: c.operations.get(ID),
    "operations.abort": lambda c: c.operations.abort(ID),
    "batches.create": lambda c: c.batches.create(BatchRequest(jobs=[JOB])),
    "batches.list": lambda c: c.batches.list(status="OPEN"),
    "batches.get": lambda c: c.batches.get(ID),
    "batches.close": lambda c: c.batches.close(ID),
    "batches.cancel": lambda c: c.batches.cancel(ID),
    "batches.retry": lambda c: c.batches.retry(ID),
    "flows.create": lambda c: c.flows.create(FlowRequest(jobs={"only": FlowJobRequest(job_type="A", payload=1)})),
    "flows.list": lambda c: c.flows.list(),
    "flows.get": lambda c: c.flows.get(ID),
    "flows.cancel": lambda c: c.flows.cancel(ID),
    "flows.retry": lambda c: c.flows.retry(ID),
    "alerts.create": lambda c: c.alerts.create(ALERT),
    "alerts.list": lambda c: c.alerts.list(),
    "alerts.get": lambda c: c.alerts.of("o").get("n"),
    "alerts.set": lambda c: c.alerts.set("n", ALERT),
    "alerts.delete": lambda c: c.alerts.delete("n"),
    "alerts.pause": lambda c: c.alerts.pause("n"),
    "alerts.resume": lambda c: c.alerts.resume("n"),
    "alerts.test": lambda c: c.alerts.test("n"),
    "alerts.notices": lambda c: c.alerts.notices("n"),
    "schedules.create": lambda c: c.schedules.create(SCHEDULE),
    "schedules.list": lambda c: c.schedules.list(),
    "schedules.times": lambda c: c.schedules.times("@daily"),
    "schedules.get": lambda c: c.schedules.of("o").get("n"),
    "schedules.set": lambda c: c.schedules.set("n", SCHEDULE),
    "schedules.delete": lambda c: c.schedules.delete("n"),
    "schedules.pause": lambda c: c.schedules.pause("n"),
    "schedules.resume": lambda c: c.schedules.resume("n"),
    "schedules.run": lambda c: c.schedules.run("n"),
    "schedules.ticks": lambda c: c.schedules.ticks("n"),
    "hooks.list": lambda c: c.hooks.list(),
    "workers.list": lambda c: c.workers.list(),
    "workers.drain": lambda c: c.workers.drain("w"),
    "workers.undrain": lambda c: c.workers.undrain("w"),
    "job_types.list": lambda c: c.job_types.list(),
    "job_types.get": lambda c: c.job_types.get("A"),
    "job_types.delete": lambda c: c.job_types.delete("A"),
    "installation.stats": lambda c: c.installation.stats(queue="q"),
    "installation.owners": lambda c: c.installation.owners(q="o"),
    "installation.lag": lambda c: c.installation.lag(),
    "installation.health": lambda c: c.installation.health(),
    "installation.me": lambda c: c.installation.me(),
    "installation.webhook_secrets": lambda c: c.installation.webhook_secrets(),
    "keys.create": lambda c: c.keys.create("ci", ["submit"]),
    "keys.list": lambda c: c.keys.list(),
    "keys.get": lambda c: c.keys.get("k"),
    "keys.revoke": lambda c: c.keys.revoke("k"),
    "keys.rotate": lambda c: c.keys.rotate("k", overlap_seconds=60),
    "rejected.list": lambda c: c.rejected.list(topic="t"),
    "rejected.get": lambda c: c.rejected.get(ID),
    "rejected.discard": lambda c: c.rejected.discard(ID),
    "rejected.redrive": lambda c: c.rejected.redrive(ID),
}
"""A call of each method, by its name."""


def operations() -> dict[str, tuple[str, str]]:
    """The operations of the contract: their methods and paths."""
    contract = yaml.load(
        (ROOT / "functions" / "gateway" / "openapi.yaml").read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    )
    return {
        operation["operationId"]: (method.upper(), path)
        for path, operations in contract["paths"].items()
        for method, operation in operations.items()
        if isinstance(operation, dict) and "operationId" in operation
    }


OPERATIONS = operations()
METHODS = jsonlib.loads((ROOT / "clients" / "methods.json").read_text())
NAMED = {of: re.sub("[A-Z]", lambda c: "_" + c[0].lower(), name) for of, name in METHODS.items() if isinstance(name, str)}


def test_every_operation_has_its_method() -> None:
    assert sorted(METHODS) == sorted(OPERATIONS)
    assert sorted(CALLS) == sorted(NAMED.values())


async def entered(result: Any) -> Any:
    return await (anext(result) if hasattr(result, "__anext__") else result)


@pytest.mark.parametrize(("operation", "name"), NAMED.items())
def test_a_method_sends_its_operation(both: Both, operation: str, name: str) -> None:
    gateway = Gateway(json(404, {"status": 404, "message": "no"}))
    method, path = OPERATIONS[operation]
    call = CALLS[name]

    def called(client: Any) -> Any:
        assert callable(operator.attrgetter(name)(client))
        result = call(client)
        if both.asynchronous:
            return entered(result)
        return next(result) if hasattr(result, "__next__") else result

    with pytest.raises(NotFound):
        both.calls(gateway, called)
    pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))
    assert gateway.asked[0].method == method
    assert re.fullmatch(pattern, gateway.asked[0].url.raw_path.decode().split("?")[0])
