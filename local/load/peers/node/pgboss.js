// pg-boss on DATABASE_URL. A worker fetches a batch, and asks for the next one at once, by notifyWorker, instead of
// waiting for its poll, which is at least 0.5 s.
import PgBoss from 'pg-boss'
import pg from 'pg'
import { Handlers, serve } from './server.js'

const queue = 'noop'
const workers = 4
const batchSize = 500

const handlers = new Handlers()
const boss = new PgBoss({ connectionString: process.env.DATABASE_URL, max: 10 })
boss.on('error', error => console.error(error))
await boss.start()
await boss.createQueue(queue)
for (let i = 0; i < workers; i++) {
  const id = await boss.work(queue, { batchSize, pollingIntervalSeconds: 0.5 }, async jobs => {
    for (const job of jobs) handlers.began(job.data)
    boss.notifyWorker(id)
  })
}
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 1 })

serve({
  handlers,
  store: payloads => boss.insert(payloads.map(data => ({ name: queue, data }))),
  open: async () => {
    const { rows } = await pool.query(`SELECT EXISTS (SELECT FROM pgboss.job WHERE name = $1 AND state < 'completed') AS open`, [queue])
    return rows[0].open
  },
  stop: async () => {
    await boss.stop({ graceful: false })
    await pool.end()
  }
})
