import asyncio

from pydantic import BaseModel

from jobweaver import AsyncClient, Attempt, Worker


class Order(BaseModel):
    order: str
    cents: int = 0


class Receipt(BaseModel):
    receipt: str


class Items(BaseModel):
    items: list[str]


class Shipment(BaseModel):
    receipt: str
    boxes: list[str | None]


jobs = AsyncClient()  # of JOBWEAVER_URL and JOBWEAVER_API_KEY


@jobs.task("shop.charge", title="Charge a card", max_retry_count=5)
async def charge(payload: Order, attempt: Attempt) -> Receipt:
    # An attempt after a crash does not charge again.
    receipt = await attempt.astep("charge", lambda: f"{payload.cents} cents for order {payload.order}")
    return Receipt(receipt=receipt)


@jobs.task("shop.list")
def list_items(payload: Order) -> Items:
    return Items(items=["a book", "a pen"])


@jobs.task("shop.pack")
def pack(payload: str) -> str:
    return f"a box with {payload}"


@jobs.task("shop.ship")
def ship(payload: Shipment) -> str:
    return f"{len(payload.boxes)} boxes: {payload.receipt}"


async def main() -> None:
    async with jobs, Worker(jobs, tasks=[charge, list_items, pack, ship]):
        # One job: the payload and the output have types.
        charged = await charge.run(Order(order="16", cents=4200), tags=["vip"])
        print(charged.receipt)

        # A flow: outputs stand for values that are not known yet.
        flow = jobs.flow(name="order 17")
        items = flow.add("list", list_items, Order(order="17"))
        paid = flow.add("charge", charge, Order(order="17", cents=900))
        packed = flow.each("pack", pack, items.output.items, lambda item, _: item)
        flow.add("ship", ship, {"receipt": paid.output.receipt, "boxes": packed.output})
        made = await flow.submit()
        print(await ship.wait(made.jobs["ship"]))


asyncio.run(main())
