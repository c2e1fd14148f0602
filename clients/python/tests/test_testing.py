"""The test kit."""

import asyncio
from datetime import timedelta
from typing import Any

from jobweaver import AsyncClient, Attempt, NotRetryable, WaitForCallback
from jobweaver.testing import TestJob, TestStep

DAY = 86_400.0
charges: list[str] = []
jobs = AsyncClient("http://none")


def charge(order: str) -> str:
    charges.append(order)
    return f"{order}: charge {len(charges)}"


@jobs.task("SELL")
async def sell(payload: str, attempt: Attempt) -> dict[str, str]:
    receipt = await attempt.astep("charge", lambda: charge(payload))
    attempt.progress(50, "charged")
    await attempt.asleep("cool off", DAY)
    attempt.log("shipped", "warn")
    return {"receipt": receipt}


@jobs.task("SELL-IN-A-THREAD")
def sell_in_a_thread(payload: str, attempt: Attempt) -> dict[str, str]:
    receipt = attempt.step("charge", lambda: charge(payload))
    attempt.sleep("cool off", DAY)
    return {"receipt": receipt}


def test_a_job_sleeps_in_no_time_and_a_step_runs_once_whatever_is_killed() -> None:
    for task in (sell, sell_in_a_thread):
        charges.clear()
        job = TestJob(die_after_save=1)
        first = job.next(task, "17")
        charged = TestStep("charge", "17: charge 1")
        assert (first.died, first.steps, first.saves, first.attempt, first.output) == (True, [charged], [], 1, None)
        assert job.next(task, "17").snooze == DAY
        assert job.steps == [charged, TestStep("cool off", until=job.now + timedelta(seconds=DAY))]
        assert job.next(task, "17").snooze == DAY  # the clock stands still
        last = job.run(task, "17")
        assert (last.output, last.attempt) == ({"receipt": "17: charge 1"}, 5)
        assert charges == ["17"]


def test_a_step_whose_result_is_not_stored_runs_again() -> None:
    charges.clear()
    ran = TestJob(die_before_save=1).run(sell, "17")
    assert (ran.output, ran.attempt, ran.log, ran.progress) == ({"receipt": "17: charge 2"}, 3, ["warn shipped"], "50% charged")


def test_a_job_may_die_at_each_of_its_saves() -> None:
    def sell_and_save(attempt: Attempt) -> str:
        receipt = attempt.step("charge", lambda: charge(attempt.payload))
        attempt.save("charged")
        attempt.sleep("cool off", DAY)
        return receipt

    for before, stored in ((1, []), (2, ["charge"]), (3, ["charge"])):  # the charge, the checkpoint, the sleep
        charges.clear()
        job = TestJob(die_before_save=before)
        first = job.next(sell_and_save, "17")
        assert (first.died, [step.name for step in first.steps], len(first.saves)) == (True, stored, max(0, before - 2))
        charged = 2 if before == 1 else 1
        assert (job.run(sell_and_save, "17").output, len(charges)) == (f"17: charge {charged}", charged)


def test_handlers_failures_and_waits_are_seen() -> None:
    def count(attempt: Attempt) -> str:
        attempt.save({"at": (attempt.checkpoint or {"at": 0})["at"] + 1})
        return "done"

    def fail(attempt: Attempt) -> Any:
        raise NotRetryable("no")

    async def hand_over(attempt: Attempt) -> Any:
        raise WaitForCallback(5)

    job = TestJob()
    counted = job.next(count, None)
    assert (counted.output, job.saved, counted.saves) == ("done", {"at": 1}, [{"at": 1}])
    assert isinstance(TestJob().run(fail, None).error, NotRetryable)
    assert TestJob().run(hand_over, None).wait == 5


def test_an_attempt_has_the_steps_that_its_handler_leaves_running() -> None:
    async def handle(attempt: Attempt) -> None:
        async def slow() -> int:
            await asyncio.sleep(0.02)
            return 7

        await asyncio.gather(attempt.astep("charge", slow), attempt.asleep("cool off", 60))

    ran = TestJob().next(handle, None)
    assert ran.snooze == 60
    assert [(step.name, step.result) for step in ran.steps] == [("cool off", None), ("charge", 7)]
