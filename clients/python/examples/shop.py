"""The worker of a shop. Kill it at any moment: each sale goes on where it was, and reserves its stock once."""

import asyncio
import os
import signal
from pathlib import Path

from pydantic import BaseModel

from jobweaver import AsyncClient, Attempt, NotRetryable, Worker

jobs = AsyncClient()  # of JOBWEAVER_URL and JOBWEAVER_API_KEY
ledger = Path(os.environ.get("LEDGER", "ledger.txt"))  # stands for the systems that the shop calls


class Order(BaseModel):
    order: str
    to: str
    items: list[str]


class Mail(BaseModel):
    to: str
    text: str


class Sale(BaseModel):
    boxes: list[str]
    mailed: str


def enter(text: str) -> None:
    with ledger.open("a") as lines:
        lines.write(text + "\n")


async def print_label(order: str) -> None:
    enter(f"prints {order}")
    await asyncio.sleep(2)  # a worker that is killed here has not stored the step: the next one prints again


@jobs.task("shop.py.pack")
def pack(item: str) -> str:
    return f"a box with {item}"


@jobs.batch_task("shop.py.mail", max_batch=50)
async def mail(mails: list[Mail]) -> list[str | Exception]:
    # A mail provider takes many mails at once.
    for each in mails:
        enter(f"mailed {each.to}")
    return [f"mailed {each.to}" for each in mails]


@jobs.task("shop.py.sell")
async def sell(sale: Order, attempt: Attempt) -> Sale:
    await attempt.astep("reserve", lambda: enter(f"reserved {sale.order}"))
    await attempt.astep("print", lambda: print_label(sale.order))
    paid = await attempt.areceive("com.shop.paid", match={"order": sale.order}, timeout=7 * 86_400)
    if paid is None:
        raise NotRetryable(f"order {sale.order} was not paid in time", error_code="SHOP.UNPAID")
    boxes = await attempt.acall_all(pack, sale.items)
    text = f"{len(boxes)} boxes for {paid.data['cents']} cents"
    return Sale(boxes=boxes, mailed=await attempt.acall(mail, Mail(to=sale.to, text=text)))


async def main() -> None:
    worker = Worker(jobs, tasks=[sell, pack, mail])
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
    async with jobs:
        await worker.serve()


asyncio.run(main())
