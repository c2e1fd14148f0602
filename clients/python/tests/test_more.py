import asyncio
import importlib
import json
import re
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import standardwebhooks
from conftest import ID, job
from pydantic import BaseModel, Field

from jobweaver import Filter, JobRequest, Webhook, WebhookVerificationError, __version__, enqueue, enqueue_async
from jobweaver.types import write_types

OLD, NEW = "whsec_b2xkIG9sZCBvbGQgb2xkIG9sZCBvbGQ=", "whsec_bmV3IG5ldyBuZXcgbmV3IG5ldyBuZXc="
ROOT = Path(__file__).parents[1]


def body() -> str:
    return json.dumps({"type": "io.jobweaver.job.status.v1"} | job("COMPLETED"))


def signed(secret: str, text: str, at: datetime | None = None) -> dict[str, str]:
    at = at or datetime.now(UTC)
    signature = standardwebhooks.Webhook(secret).sign("j1.v4", at, text)
    return {"Webhook-Id": "j1.v4", "Webhook-Timestamp": str(int(at.timestamp())), "Webhook-Signature": signature}


def test_a_webhook_is_verified_with_one_of_the_secrets() -> None:
    hook = Webhook(NEW, OLD)
    for secret in (OLD, NEW):
        end = hook.verify(body().encode(), signed(secret, body()))
        assert (end.id, str(end.job.job_id), end.job.status) == ("j1.v4", ID, "COMPLETED")


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        (signed(OLD, body()), body()),
        (signed(NEW, body(), datetime.now(UTC) - timedelta(minutes=6)), body()),
        (signed(NEW, body()), body().replace("COMPLETED", "FAILED")),
        ({}, body()),
    ],
    ids=["another secret", "an old one", "a changed one", "an unsigned one"],
)
def test_a_webhook_that_is_not_ours_is_refused(headers: dict[str, str], text: str) -> None:
    with pytest.raises(WebhookVerificationError):
        Webhook(NEW).verify(text, headers)


def test_a_text_that_is_no_secret_is_refused_at_once() -> None:
    Webhook(f" {NEW}\r\n")
    for wrong in (f"v1,{NEW}", NEW.removeprefix("whsec_"), "whsec_", "whsec_AA!AA", ""):
        with pytest.raises(ValueError, match="whsec_"):
            Webhook(wrong)


class Connection:
    def __init__(self) -> None:
        self.asked: list[object] = []

    def execute(self, query: str, params: tuple[str, ...]) -> "Connection":
        self.asked += [query, params]
        return self

    def fetchone(self) -> tuple[str]:
        return (ID,)


class AsyncConnection(Connection):
    async def execute(self, query, params):
        return AsyncCursor(super().execute(query, params))


class AsyncCursor:
    def __init__(self, cursor: Connection) -> None:
        self.cursor = cursor

    async def fetchone(self):
        return self.cursor.fetchone()


class EmailPayload(BaseModel):
    send_to: list[str] = Field(alias="to")


def test_a_job_is_enqueued_on_ones_own_connection() -> None:
    request = JobRequest(job_type="EMAIL", payload=EmailPayload(to=["a"]), queue="mail", delay_ms=1000)
    want = [
        "select jobweaver.enqueue(%s, %s::text::jsonb, %s::text::jsonb)",
        ("EMAIL", '{"to": ["a"]}', '{"queue": "mail", "delayMs": 1000}'),
    ]
    one, other = Connection(), AsyncConnection()
    assert str(enqueue(one, request)) == ID
    assert str(asyncio.run(enqueue_async(other, request))) == ID
    assert one.asked == want
    with pytest.raises(ValueError, match="needs no"):
        enqueue(one, JobRequest(job_type="EMAIL", payload={}, idempotency_key="a"))
    assert other.asked == want


def test_the_package_has_the_version_of_the_contract() -> None:
    own = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    contract = (ROOT / "../../functions/gateway/openapi.yaml").read_text()
    assert own == __version__
    assert re.search(rf"^  version: {re.escape(__version__)}$", contract, re.MULTILINE)


def test_a_filter_has_each_parameter_of_the_contract() -> None:
    contract = json.loads((ROOT / "../../functions/gateway/openapi.json").read_text())
    named = contract["components"]["parameters"]
    parameters = [named.get(p.get("$ref", "").split("/")[-1], p) for p in contract["paths"]["/api/jobs"]["get"]["parameters"]]
    values: dict[str, object] = {"status": ["FAILED"], "no_error_code": True}
    instants = [name for name in Filter.model_fields if "since" in name or "until" in name]
    values |= dict.fromkeys(instants, datetime.now(UTC))
    query = dict(Filter.model_validate(dict.fromkeys(Filter.model_fields, "x") | values).query())
    assert set(query) | {"limit", "cursor"} == {p["name"] for p in parameters if p["in"] == "query"}
    assert query["noErrorCode"] == "true"


def test_types_are_made_of_the_schemas_of_job_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = {"type": "object", "required": ["on"], "properties": {"on": {"type": "boolean"}}}
    text = write_types(
        [
            {
                "name": "resize.image",
                "schema": {"type": "object", "required": ["url"], "properties": {"url": {"type": "string"}}},
                "outputSchema": {"type": "object", "required": ["width"], "properties": {"width": {"type": "integer"}}},
            },
            {
                "name": "EMAIL",
                "schema": {
                    "title": "Mail",
                    "type": "object",
                    "properties": {"step": {"$ref": "#/$defs/Step"}},
                    "$defs": {"Step": step},
                },
            },
            {"name": "ANY", "schema": None},
        ]
    )
    (tmp_path / "made_types.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    made = importlib.import_module("made_types")
    assert set(made.JOB_TYPES) == {"resize.image", "EMAIL"}
    assert made.ResizeImagePayload(url="a").url == "a"
    assert made.JOB_OUTPUTS["resize.image"](width=5).width == 5
    assert made.EmailPayload(step={"on": True}).step.on is True
