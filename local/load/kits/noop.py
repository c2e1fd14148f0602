# The Python kit runs no-ops that wait already, and prints the seconds. Arguments: job type, queue, jobs, slots.
import os
import sys
import time

from jobweaver import AsyncClient, Attempt, Worker

job_type, queue, left, slots = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
worker = Worker(AsyncClient(os.environ["JOBWEAVER_URL"]), concurrency=slots, queues=[queue])
begin = time.monotonic()


@worker.handler(job_type)
async def noop(_: Attempt) -> None:
    global left
    left -= 1
    if left == 0:
        print(time.monotonic() - begin)
        worker.stop()


worker.run()
