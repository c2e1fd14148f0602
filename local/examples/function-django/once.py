import json
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("RECEIPTS", "receipts"))


def once(job_id: str, work: Callable[[], Any]) -> Any:
    """Returns the result of the first attempt of a job that had one.

    Here a file keeps it; in your database, a row with the job's id as its key, written in the transaction of the work.
    """
    path = FOLDER / f"{job_id}.json"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        draft = FOLDER / f"{job_id}.{uuid.uuid4()}"
        draft.write_text(json.dumps(work()))
        try:
            path.hardlink_to(draft)
        except FileExistsError:
            pass  # another attempt was faster: its result counts
        draft.unlink()
    return json.loads(path.read_text())
