"""A FastAPI app with a function for jobs of type FUNCTION. It charges an order, once for each job."""

import os
import uuid
from typing import Annotated

import uvicorn
from fastapi import Depends, FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ValidationError
from standardwebhooks import Webhook

from once import once

webhook = Webhook(os.environ["WEBHOOK_SECRET"])
app = FastAPI()


class Refusal(Exception):
    def __init__(self, status: int, code: str, message: str) -> None:
        self.status, self.body = status, {"errorCode": code, "message": message}


@app.exception_handler(Refusal)
def refused(request: Request, refusal: Refusal) -> JSONResponse:
    return JSONResponse(refusal.body, refusal.status)


async def verified(request: Request) -> bytes:
    """Returns the body as it was sent: the signature is over it."""
    body = await request.body()
    try:
        webhook.verify(body, dict(request.headers), json_parse=False)
    except Exception as error:  # a header may be broken in many ways
        raise Refusal(401, "SHOP.BAD_SIGNATURE", str(error)) from error
    return body


class Order(BaseModel):
    order: str
    cents: int


@app.post("/charge")
def charge(request: Request, body: Annotated[bytes, Depends(verified)]) -> dict[str, object]:
    try:
        order = Order.model_validate_json(body)
    except ValidationError as error:
        raise Refusal(400, "SHOP.BAD_ORDER", str(error)) from error
    # The id of the attempt, which is signed too, is <jobId>.<attempt>.
    job_id = request.headers["webhook-id"].split(".")[0]
    return once(job_id, lambda: {"receipt": str(uuid.uuid4()), **order.model_dump()})


if __name__ == "__main__":
    uvicorn.run(app, host=os.environ.get("HOST", "0.0.0.0"), port=int(os.environ.get("PORT", "8080")))
