import asyncio
import json as jsonlib
import threading
from datetime import UTC, datetime

import httpx
import pytest
from conftest import ACCEPTED, ID, Both, Gateway, breaks, job, json

from jobweaver import (
    AsyncClient,
    BatchRequest,
    Client,
    ClientClosed,
    Conflict,
    Filter,
    FlowJobRequest,
    FlowRequest,
    GatewayUnreachable,
    JobChange,
    JobEnded,
    JobRequest,
    NotFound,
    RateLimited,
    RunAgainRequest,
    Unavailable,
)

REQUEST = JobRequest(job_type="A", payload=1)
AWAY = json(503, {"status": 503, "errorCode": "API.UNAVAILABLE", "message": "away"})


def submit(client):
    return client.submit(REQUEST)


def cancel(client):
    return client.cancel(ID)


def get(client):
    return client.get(ID)


def batch(client):
    return client.submit_batch([REQUEST])


def create_flow(client):
    return client.flows.create(FlowRequest(jobs={"only": FlowJobRequest(job_type="A", payload=1)}))


def create_batch(client):
    return client.batches.create(BatchRequest(jobs=[REQUEST]))


def run_again(client):
    return client.run_again(ID)


@pytest.mark.parametrize(
    ("name", "call", "first", "times"),
    [
        ("a submit whose answer is lost", submit, breaks(), 2),
        ("a batch whose answer is lost", batch, breaks(), 2),
        ("running again, when the answer is lost", run_again, breaks(), 2),
        ("a flow whose answer is lost", create_flow, breaks(), 2),
        ("a batch that others join, when the answer is lost", create_batch, breaks(), 2),
        ("the retry of a flow whose answer is lost", lambda c: c.flows.retry(ID), breaks(), 1),
        ("a submit to a gateway without its database", submit, AWAY, 2),
        ("a submit that is wrong", submit, json(400, {}), 1),
        ("a submit that came too often", submit, json(429, {}, Retry_After="0"), 2),
        ("a submit that came too often, by RateLimit", submit, json(429, {}, RateLimit='"jobs";r=0;t=0'), 2),
        ("a submit that came too often, without knowing when", submit, json(429, {}), 1),
        ("a submit that came too often, for an hour", submit, json(429, {}, Retry_After="3600"), 1),
        ("a request that reads", get, breaks(), 2),
        ("a request that reads, and takes too long", get, breaks(httpx.ReadTimeout), 2),
        ("a request that reads, of a broken gateway", get, json(500, {}), 1),
        ("a command whose answer is lost", cancel, breaks(), 1),
        ("a command without a connection", cancel, breaks(httpx.ConnectError), 2),
        ("a command that was not read", cancel, json(408, {}), 2),
        ("a command to a gateway that cannot answer", cancel, AWAY, 1),
    ],
)
def test_a_request_is_repeated_only_where_that_does_nothing_twice(both: Both, name, call, first, times) -> None:
    then = (
        job("PENDING")
        | ACCEPTED
        | {"results": [{"status": 202, "jobId": ID}], "flowId": ID, "jobs": {}, "batchId": ID, "status": "COMPLETED"}
    )
    gateway = Gateway(first, json(200, then))
    if times == 1:
        with pytest.raises((Exception,)):
            both.calls(gateway, call)
    else:
        both.calls(gateway, call)
    assert len(gateway.asked) == times, name
    assert gateway.asked[0].headers["Authorization"] == "Bearer the key"
    assert gateway.asked[0].content == gateway.asked[-1].content, name


def test_a_repeated_submit_keeps_its_key(both: Both) -> None:
    gateway = Gateway(breaks(), AWAY, json(202, ACCEPTED))
    own = JobRequest(job_type="A", payload=1, idempotency_key="mine")
    named = JobRequest(job_type="A", payload=1, job_id=ID)
    accepted = both.calls(gateway, submit, submit, lambda c: c.submit(own), lambda c: c.submit(named))
    assert str(accepted[0].job_id) == ID
    bodies = [jsonlib.loads(r.content) for r in gateway.asked]
    assert bodies[0] == bodies[1] == bodies[2]
    assert len(bodies[0]["idempotencyKey"]) == 36
    assert bodies[3]["idempotencyKey"] != bodies[0]["idempotencyKey"]
    assert bodies[4] == {"jobType": "A", "payload": 1, "idempotencyKey": "mine"}
    assert bodies[5] == {"jobType": "A", "payload": 1, "jobId": ID}


def test_a_batch_is_sent_by_the_thousand_with_its_keys(both: Both) -> None:
    def results(n: int):
        return json(200, {"results": [{"status": 202, "jobId": ID}] * n})

    gateway = Gateway(results(1000), results(1))
    (got,) = both.calls(gateway, lambda c: c.submit_batch(REQUEST for _ in range(1001)))
    assert len(got) == 1001
    assert len(gateway.asked) == 2
    assert len({each["idempotencyKey"] for each in jsonlib.loads(gateway.asked[0].content)["jobs"]}) == 1000


def test_tries_end(both: Both) -> None:
    gateway = Gateway(breaks())
    with pytest.raises(GatewayUnreachable):
        both.calls(gateway, get, retries=2)
    assert len(gateway.asked) == 3
    gateway = Gateway(AWAY)
    with pytest.raises(Unavailable):
        both.calls(gateway, get, retries=0)
    assert len(gateway.asked) == 1


def test_where_nothing_is_left_the_next_request_waits_until_there_is_again(both: Both) -> None:
    gateway = Gateway(json(202, job("PENDING"), RateLimit='"requests";r=3;t=1, "jobs";r=0;t=1'), json(202, job("PENDING")))
    both.calls(gateway, submit, get, submit)
    assert gateway.at[1] < 0.9
    assert gateway.at[2] >= 0.99


def test_a_closed_client_ends_a_pause_at_once() -> None:
    client = Client("http://gateway", transport=Gateway(json(429, {}, Retry_After="20")).transport)
    closing = threading.Timer(0.05, client.close)
    closing.start()
    with pytest.raises(ClientClosed):
        client.get(ID)
    with pytest.raises(ClientClosed):
        client.get(ID)
    closing.join()


def test_a_cancelled_task_and_a_closed_client_end_at_once() -> None:
    async def run() -> None:
        client = AsyncClient("http://gateway", transport=Gateway(json(503, {}, Retry_After="20")).transport)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await client.get(ID)
        call = asyncio.create_task(client.get(ID))
        await asyncio.sleep(0)
        await client.aclose()
        with pytest.raises(ClientClosed):
            await call

    asyncio.run(asyncio.wait_for(run(), 5))


def test_errors_are_types_with_their_problem_details(both: Both) -> None:
    details = [{"path": "priority", "message": "must be from 0 to 9"}]
    body = {"status": 404, "errorCode": "API.JOB_NOT_FOUND", "message": "no job", "jobId": ID, "traceId": ID, "details": details}
    gateway = Gateway(json(404, body))
    with pytest.raises(NotFound, match=r"^404 API.JOB_NOT_FOUND: no job$") as caught:
        both.calls(gateway, get)
    assert (caught.value.status, caught.value.error_code, caught.value.job_id) == (404, "API.JOB_NOT_FOUND", ID)
    assert caught.value.details[0].path == "priority"
    assert "application/problem+json" in gateway.asked[0].headers["Accept"]
    with pytest.raises(Conflict):
        both.calls(Gateway(lambda: httpx.Response(409, text="<html>")), cancel)
    with pytest.raises(RateLimited):
        both.calls(Gateway(json(429, None)), cancel)


def test_a_redirect_is_an_error_and_not_followed(both: Both) -> None:
    gateway = Gateway(lambda: httpx.Response(307, headers={"Location": "http://elsewhere/"}))
    with pytest.raises(Exception, match="307"):
        both.calls(gateway, submit)
    assert len(gateway.asked) == 1


def test_waiting_goes_on_through_a_restart(both: Both) -> None:
    running = json(200, job("RUNNING"))
    gateway = Gateway(running, breaks(), AWAY, running, json(200, job("FAILED")))
    (ended,) = both.calls(gateway, lambda c: c.wait(ID), retries=0)
    assert ended.status == "FAILED"
    assert len(gateway.asked) == 5
    assert gateway.asked[0].url.query == b"wait=30s"
    failed = job("FAILED", lastError={"errorCode": "X", "message": "no"})
    with pytest.raises(JobEnded, match=f"job {ID} is FAILED: X: no"):
        both.calls(Gateway(json(202, ACCEPTED), json(200, failed)), lambda c: c.run(REQUEST))
    with pytest.raises(TimeoutError):
        both.calls(Gateway(running), lambda c: c.wait(ID, timeout=0.2))


def test_a_list_goes_from_page_to_page(both: Both) -> None:
    gateway = Gateway(
        json(200, {"jobs": [job("FAILED")], "nextCursor": ID, "searchedTo": None}),
        json(200, {"jobs": [job("FAILED")], "nextCursor": None, "searchedTo": None}),
    )
    which = Filter(status=["FAILED", "CANCELLED"], search="a b", fan_out_id=ID, ended_since=datetime(2026, 11, 22, 8, tzinfo=UTC))
    assert len(both.all(gateway, lambda c: c.list(which))) == 2
    ended = "endedSince=2026-11-22T08%3A00%3A00%2B00%3A00"
    want = f"status=FAILED&status=CANCELLED&fanOutId={ID}&q=a+b&{ended}&limit=200&cursor={ID}"
    assert gateway.asked[1].url.query == want.encode()


def test_a_retry_of_a_flow_says_what_runs_again(both: Both) -> None:
    gateway = Gateway(json(202, {"flowId": ID, "jobs": 3}))
    again = both.calls(
        gateway, lambda c: c.flows.retry(ID), lambda c: c.flows.retry(ID, from_=["pack"]), lambda c: c.flows.retry(ID, all_=True)
    )
    assert again == [3, 3, 3]
    assert [jsonlib.loads(asked.content or b"null") for asked in gateway.asked] == [None, {"from": ["pack"]}, {"all": True}]


def test_changes_are_patches_and_run_again_has_a_key(both: Both) -> None:
    gateway = Gateway(json(202, ACCEPTED))
    both.calls(
        gateway,
        lambda c: c.change("a/b", JobChange(priority=7, tags=None)),
        lambda c: c.run_again(ID, RunAgainRequest(queue="mail")),
    )
    first, second = gateway.asked
    assert (first.method, first.url.raw_path, first.headers["Content-Type"]) == (
        "PATCH",
        b"/api/jobs/a%2Fb",
        "application/merge-patch+json",
    )
    assert jsonlib.loads(first.content) == {"priority": 7, "tags": None}
    assert set(jsonlib.loads(second.content)) == {"queue", "idempotencyKey"}


def test_a_misspelt_member_is_an_error() -> None:
    with pytest.raises(ValueError, match="quue"):
        JobRequest(job_type="A", payload=1, quue="mail")
    with pytest.raises(ValueError, match="quue"):
        FlowRequest(jobs={"only": {"job_type": "A", "payload": 1, "quue": "mail"}})
    with pytest.raises(ValueError, match="quue"):
        BatchRequest(on_complete={"job_type": "A", "payload": 1, "quue": "mail"})
