"""Inserts an order and, in the same transaction, the job that confirms it. DATABASE_URL is the address of a
database with an outbox.
"""

import os

import psycopg
from psycopg.types.json import Jsonb


class NothingToPay(Exception):
    pass


def order(conn: psycopg.Connection, total: int) -> str:
    """Inserts an order and enqueues its job. Either both are committed, or neither."""
    with conn.transaction():
        payload = {"steps": [{"type": "LOG", "message": f"paid {total}"}]}
        options = {"tags": ["python"], "orderingKey": "customer-9"}
        (job,) = conn.execute(
            "select jobweaver.enqueue('SIMULATION', %s, %s)", [Jsonb(payload), Jsonb(options)]
        ).fetchone()
        conn.execute("insert into orders (total, job_id) values (%s, %s)", [total, job])
        if total == 0:
            raise NothingToPay
    return str(job)


with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
    print(order(connection, 120))
    try:
        order(connection, 0)
    except NothingToPay:
        pass  # that order has neither a row nor a job
