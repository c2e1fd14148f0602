// Graphile Worker on DATABASE_URL, with the settings of its page on performance: worker.graphile.org/docs/performance.
import { Logger, makeWorkerUtils, run } from 'graphile-worker'
import pg from 'pg'
import { Handlers, serve } from './server.js'

const task = 'noop'

const handlers = new Handlers()
const logger = new Logger(() => () => {}) // by default it prints a line a job
const preset = {
  worker: {
    connectionString: process.env.DATABASE_URL,
    logger,
    concurrentJobs: 24,
    maxPoolSize: 25,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0
  }
}
const utils = await makeWorkerUtils({ connectionString: process.env.DATABASE_URL, logger })
await utils.migrate()
const runner = await run({ preset, taskList: { [task]: async payload => handlers.began(payload) }, noHandleSignals: true })
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 1 })

serve({
  handlers,
  store: payloads => utils.addJobs(payloads.map(payload => ({ identifier: task, payload }))),
  open: async () => {
    const { rows } = await pool.query('SELECT EXISTS (SELECT FROM graphile_worker._private_jobs) AS open')
    return rows[0].open
  },
  stop: async () => {
    await runner.stop()
    await utils.release()
    await pool.end()
  }
})
