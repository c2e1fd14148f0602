// Inserts an order and, in the same transaction, the job that confirms it. DATABASE_URL is the address of a database
// with an outbox.
import pg from 'pg'

class NothingToPay extends Error {}

/** order inserts an order and enqueues its job. Either both are committed, or neither. */
async function order(client: pg.Client, total: number): Promise<string> {
  const payload = { steps: [{ type: 'LOG', message: `paid ${total}` }] }
  const options = { tags: ['typescript'], orderingKey: 'customer-9' }
  await client.query('begin')
  try {
    const enqueued = await client.query<{ job: string }>(
      "select jobweaver.enqueue('SIMULATION', $1, $2) as job", [payload, options])
    const job = enqueued.rows[0]!.job
    await client.query('insert into orders (total, job_id) values ($1, $2)', [total, job])
    if (total === 0) throw new NothingToPay()
    await client.query('commit')
    return job
  } catch (error) {
    await client.query('rollback')
    throw error
  }
}

const client = new pg.Client({ connectionString: process.env.DATABASE_URL })
await client.connect()
console.log(await order(client, 120))
try {
  await order(client, 0)
} catch (error) {
  if (!(error instanceof NothingToPay)) throw error // that order has neither a row nor a job
}
await client.end()
