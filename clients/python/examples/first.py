from pydantic import BaseModel

from jobweaver import AsyncClient, Client, Worker


class Order(BaseModel):
    order: str
    cents: int


class Receipt(BaseModel):
    receipt: str


jobs = Client()


@jobs.task("first.charge")
def charge(payload: Order) -> Receipt:
    return Receipt(receipt=f"{payload.cents} cents for order {payload.order}")


with Worker(AsyncClient(), tasks=[charge]):
    print(charge.run(Order(order="16", cents=4200)).receipt)
