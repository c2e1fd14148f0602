import os
import signal

from jobweaver import AsyncClient, Attempt, NotRetryable, Worker

client = AsyncClient(os.environ["JOBWEAVER_URL"], os.environ.get("JOBWEAVER_API_KEY"))
worker = Worker(client, concurrency=4, queues=["pull"])


@worker.handler("RESIZE")
def resize(attempt: Attempt) -> dict[str, int]:
    width = attempt.payload["width"]
    if width <= 0:
        raise NotRetryable("width must be more than 0", error_code="RESIZE.WIDTH")
    attempt.log(f"resize to {width} pixels")
    for percent in range(0, 100, 25):
        attempt.progress(percent)
        if attempt.cancelled.wait(0.05):  # the attempt should end
            raise InterruptedError(attempt.reason)
    return {"width": width}


for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *_: worker.stop())
worker.run()
