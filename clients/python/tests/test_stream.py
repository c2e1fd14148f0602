import json as jsonlib

import httpx
import pytest
from conftest import ID, Both, Gateway, breaks, job, json

from jobweaver import Filter, Forbidden, JobEvent, ProgressEvent, ReloadEvent


def events(text: str):
    return lambda: httpx.Response(200, content=": begin\n\n" + text, headers={"Content-Type": "text/event-stream; charset=utf-8"})


def test_a_stream_goes_on_after_its_last_event(both: Both) -> None:
    first, rest = jsonlib.dumps(job("RUNNING"), indent=1).split("\n", 1)
    data = f"data: {first}\n" + "".join(f"data: {line}\n" for line in rest.split("\n"))
    gateway = Gateway(
        events(
            f"id: a-1\nevent: job\n{data}\n"
            f'event: progress\ndata: {{"jobId": "{ID}", "attempt": 1, "percent": 40, "message": null}}\n\n'
            "id: a-2\nevent: job\ndata: {"
        ),
        breaks(),
        json(503, {}, Retry_After="0"),
        json(429, {}, Retry_After="0"),
        events('event: new\ndata: 1\n\nid: b-9\r\nevent: reload\r\ndata: {"reason": "missed"}\r\n\r\n'),
    )
    which = Filter(status=["RUNNING"], queue="mail")
    seen = both.all(gateway, lambda c: c.stream(which=which), lambda event: isinstance(event, ReloadEvent))
    assert [type(event) for event in seen] == [JobEvent, ProgressEvent, ReloadEvent]
    assert (seen[0].id, seen[0].data.status, seen[1].data.percent) == ("a-1", "RUNNING", 40)
    assert [r.headers.get("Last-Event-ID") for r in gateway.asked] == [None, "a-1", "a-1", "a-1", "a-1"]
    assert gateway.asked[0].url.query == b"status=RUNNING&queue=mail"


def test_a_stream_ends_with_a_refusal(both: Both) -> None:
    gateway = Gateway(json(403, {"errorCode": "API.FORBIDDEN", "message": "no"}))
    with pytest.raises(Forbidden):
        both.all(gateway, lambda c: c.stream(ID))
    assert len(gateway.asked) == 1
