"""Values of handlers that JSON cannot hold."""

import asyncio
import datetime
import decimal
import enum
import json
import uuid
from typing import Any

import pytest
from pydantic import BaseModel
from test_worker import play, working

from jobweaver import Attempt, NotRetryable
from jobweaver._json import json_of

CIRCLE: dict[str, Any] = {}
CIRCLE["again"] = [CIRCLE]
DEEP: list[Any] = []
for _ in range(100_000):
    DEEP = [DEEP]


class Size(BaseModel):
    width: float


class Color(enum.Enum):
    RED = object()


# The other kits have the same list for their languages.
FLAWED: list[tuple[Any, str]] = [
    (float("nan"), "output is nan"),
    ({"x": [1, float("inf")]}, "output.x[1] is inf"),
    (-float("inf"), "output is -inf"),
    ({float("nan"): 1}, "output.nan is nan"),
    (CIRCLE, "output.again[0] is a cycle"),
    (DEEP, "output is nested too deeply"),
    ({"at": datetime.datetime.now()}, "output.at is a datetime"),
    (datetime.date.today(), "output is a date"),
    ({"price": decimal.Decimal("1.10")}, "output.price is a Decimal"),
    ({1, 2}, "output is a set"),
    (frozenset(), "output is a frozenset"),
    ([b"x"], "output[0] is a bytes"),
    (bytearray(b"x"), "output is a bytearray"),
    (uuid.UUID(int=1), "output is a UUID"),
    ((x for x in ()), "output is a generator"),
    (object(), "output is a object"),
    (1j, "output is a complex"),
    (Color.RED, "output is a Color"),
    (len, "output is a builtin_function_or_method"),
    ({(1, 2): 3}, "output has a key that is a tuple"),
    ("cut \ud83d", "output contains half of a surrogate pair"),
    ({"a\udc00": 1}, "output.a\udc00 contains half of a surrogate pair"),
    ({"text": "a\0b"}, "output.text contains the character \\u0000"),
    ({"a\0": 1}, "output.a\\0 contains the character \\u0000"),
    ([Size(width=float("nan"))], "output[0].width is nan"),
]


@pytest.mark.parametrize(("value", "wrong"), FLAWED, ids=[wrong.encode("ascii", "replace").decode() for _, wrong in FLAWED])
def test_a_value_that_json_cannot_hold_is_named(value: Any, wrong: str) -> None:
    with pytest.raises(NotRetryable) as error:
        json_of(value, "output", "the output")
    assert str(error.value) == f"the output has no JSON form: {wrong}"
    assert error.value.result["errorCode"] == "WORKER.INVALID_OUTPUT"


def test_other_values_are_written_whole() -> None:
    twice = [1]
    for value in (None, {"a": [1, 2.5, True, "\U0001f600", None], "b": (1, 2), 3: 4}, 10**30, [twice, twice], -0.0):
        assert json.loads(json_of(value, "output", "the output")) == json.loads(json.dumps(value))
    assert json_of({"size": Size(width=2)}, "output", "the output") == '{"size":{"width":2.0}}'


@pytest.mark.parametrize("asynchronous", [False, True], ids=["threads", "asyncio"])
@pytest.mark.parametrize("what", ["output", "checkpoint", "step", "progress", "too large"])
def test_what_has_no_json_form_fails_the_job_and_its_handler_runs_once(what: str, asynchronous: bool) -> None:
    runs = 0

    def handle(attempt: Attempt) -> Any:
        nonlocal runs
        runs += 1
        match what:
            case "checkpoint":
                attempt.save({"at": datetime.datetime.now()})
            case "step":
                attempt.step("one", lambda: {1, 2})
            case "progress":
                attempt.progress(float("nan"))
            case "too large":
                return "x" * 262_143
        return {"x": float("nan")}

    async def handle_async(attempt: Attempt) -> Any:
        return await asyncio.to_thread(handle, attempt)

    async def main() -> None:
        async with working(handle_async if asynchronous else handle) as (gateway, _, _):
            await gateway.offer("a")
            await gateway.until(lambda: len(gateway.results) == 1)
            result = gateway.results[0]
            code = "WORKER.OUTPUT_TOO_LARGE" if what == "too large" else "WORKER.INVALID_OUTPUT"
            assert (result["status"], result["errorCode"], result["retryable"]) == ("FAILED", code, False)
            assert "has no JSON form: " in result["message"] or "has 262145 bytes" in result["message"]
            assert gateway.saves == []

    play(main)
    assert runs == 1
