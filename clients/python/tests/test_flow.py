"""Flows that are written as code."""

import asyncio
import json as jsonlib
from dataclasses import dataclass

import pytest
from conftest import ID, Gateway, json
from pydantic import BaseModel, Field

from jobweaver import AsyncClient, AsyncTask, Client, Task, or_else


class Item(BaseModel):
    sku: str
    full_name: str | None = Field(default=None, alias="full name")


class Reserved(BaseModel):
    total: int
    items: list[Item]


class Charge(BaseModel):
    cents: int
    memo: str | None = None


@dataclass
class Receipt:
    receipt: str


class Ship(BaseModel):
    receipt: str
    boxes: list[int | None]
    note: str = ""


def test_a_flow_in_code_has_the_references_and_conditions_of_its_jobs() -> None:
    gateway = Gateway(json(202, {"flowId": ID, "jobs": {}}))
    with Client("http://gateway", transport=gateway.transport) as jobs:
        reserve = Task(jobs, "RESERVE", str, Reserved)
        charge = Task(jobs, "CHARGE", Charge, Receipt, max_retry_count=5, unique={"key": "card"})
        pack = Task(jobs, "PACK", dict[str, object], int)
        ship = Task(jobs, "SHIP", Ship, type(None))
        flow = jobs.flow(name="order 17")
        reserved = flow.add("reserve", reserve, "17")
        charged = flow.add("charge", charge, {"cents": reserved.output.total, "memo": "m"}, tags=["vip"])
        packed = flow.each("pack", pack, reserved.output.items, lambda item, n: {"sku": item.sku, "n": n})
        note = or_else(reserved.output.items[0].full_name, "none")
        flow.add("ship", ship, {"receipt": charged.output.receipt, "boxes": packed.output, "note": note})
        count = Task(jobs, "COUNT", int, int)
        flow.each("count", count, packed.output, lambda n, _: n)
        flow.add("total", count, reserved.output.total)
        flow.add("refund", charge, Charge(cents=-1), after=[charged.failed, packed.ended, reserved])
        flow.submit()
    sent = jsonlib.loads(gateway.asked[0].content)
    assert sent["name"] == "order 17"
    at = {"queue": "pull"}
    assert sent["jobs"] == {
        "reserve": {**at, "jobType": "RESERVE", "payload": "17"},
        "charge": {
            **at,
            "jobType": "CHARGE",
            "maxRetryCount": 5,
            "tags": ["vip"],
            "payload": {"cents": {"$output": "reserve", "path": "$.total"}, "memo": "m"},
            "after": ["reserve"],
        },
        "pack": {
            **at,
            "jobType": "PACK",
            "payload": {"sku": {"$item": "value", "path": "$.sku"}, "n": {"$item": "index"}},
            "after": ["reserve"],
            "forEach": {"$output": "reserve", "path": "$.items"},
        },
        "ship": {
            **at,
            "jobType": "SHIP",
            "payload": {
                "receipt": {"$output": "charge", "path": "$.receipt"},
                "boxes": {"$output": "pack"},
                "note": {"$output": "reserve", "path": "$.items[0]['full name']", "default": "none"},
            },
            "after": ["charge", "pack", "reserve"],
        },
        "count": {
            **at,
            "jobType": "COUNT",
            "payload": {"$item": "value"},
            "after": ["pack"],
            "forEach": {"$output": "pack"},
        },
        "total": {**at, "jobType": "COUNT", "payload": {"$output": "reserve", "path": "$.total"}, "after": ["reserve"]},
        "refund": {
            **at,
            "jobType": "CHARGE",
            "maxRetryCount": 5,
            "payload": {"cents": -1, "memo": None},
            "after": [{"name": "charge", "on": "failed"}, {"name": "pack", "on": "ended"}, "reserve"],
        },
    }


def test_a_wrong_flow_is_refused_before_it_is_submitted() -> None:
    async def main() -> None:
        async with AsyncClient("http://gateway") as jobs:
            reserve, charge = AsyncTask(jobs, "RESERVE", str, Reserved), AsyncTask(jobs, "CHARGE", Charge, Receipt)
            flow = jobs.flow()
            reserved = flow.add("reserve", reserve, "17")
            with pytest.raises(AttributeError, match="has no 'totl'; it has total, items"):
                _ = reserved.output.totl  # type: ignore[attr-defined]
            with pytest.raises(AttributeError, match="has no 'skuu'"):
                _ = reserved.output.items[0].skuu  # type: ignore[attr-defined]
            with pytest.raises(TypeError, match="payload of a has no 'cent' and needs 'cents'"):
                flow.add("a", charge, {"cent": reserved.output.total})
            with pytest.raises(TypeError, match="two jobs reserve"):
                flow.add("reserve", reserve, "18")
            with pytest.raises(TypeError, match="charge comes after reserve, which is not a job of this flow"):
                jobs.flow().add("charge", charge, {"cents": reserved.output.total})
            with pytest.raises(TypeError, match="must be in the output of a job"):
                flow.each("pack", charge, [1], lambda item, n: {"cents": item})
            with pytest.raises(TypeError, match="not known yet"):
                list(reserved.output.items)

    asyncio.run(main())
