import os
import signal

from jobweaver import AsyncClient, Attempt, Worker

worker = Worker(AsyncClient(os.environ["JOBWEAVER_URL"], os.environ.get("JOBWEAVER_API_KEY")))


@worker.handler("ORDER")
def sell(attempt: Attempt) -> dict[str, str]:
    order = attempt.payload
    receipt = attempt.step("charge", lambda: charge(order, f"{attempt.job_id}/charge"))
    attempt.log(f"charged with receipt {receipt}")
    attempt.sleep("cool off", 24 * 3600)  # frees the slot; another attempt goes on here
    attempt.step("ship", lambda: ship(order, f"{attempt.job_id}/ship"))
    return {"receipt": receipt}


# Calls of outside systems, which know a repeated call by its key.
def charge(order: dict[str, str], key: str) -> str:
    return f"receipt of {order['id']}, key {key}"


def ship(order: dict[str, str], key: str) -> None:
    print(f"shipped {order['id']}, key {key}")


for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *_: worker.stop())
worker.run()
