import asyncio
import os

from jobweaver import AsyncClient, JobRequest


async def main() -> None:
    request = JobRequest(job_type="SIMULATION", payload={"steps": [{"type": "LOG", "message": "hi"}]})
    async with AsyncClient(os.environ["JOBWEAVER_URL"], os.environ.get("JOBWEAVER_API_KEY")) as jobs:
        ended = await asyncio.gather(*(jobs.run(request) for _ in range(3)))
        print([job.status for job in ended])


asyncio.run(main())
