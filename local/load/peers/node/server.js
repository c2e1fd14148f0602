// The HTTP server of a peer: the requests are those of ../main.go.
import { createServer } from 'node:http'

export class Handlers {
  ran = 0
  starts = {}

  // began counts a handler. Payloads of the latency part are numbered from 1.
  began (payload) {
    this.ran++
    if (payload.num) this.starts[payload.num] = Math.round((performance.timeOrigin + performance.now()) * 1000)
  }
}

// serve answers until a signal. store takes an array of payloads; open tells whether a job has not ended.
export function serve ({ handlers, store, open, stop }) {
  const routes = {
    'POST /jobs': async request => {
      const chunks = []
      for await (const chunk of request) chunks.push(chunk)
      await store(JSON.parse(Buffer.concat(chunks)).jobs)
      return {}
    },
    'GET /state': async () => ({ open: await open(), ran: handlers.ran }),
    'GET /starts': async () => handlers.starts
  }
  const server = createServer(async (request, response) => {
    try {
      const answer = await routes[`${request.method} ${request.url}`](request)
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
    } catch (error) {
      console.error(error)
      response.writeHead(500).end(String(error))
    }
  })
  server.listen(0, '127.0.0.1', () => console.log(`ready http://127.0.0.1:${server.address().port}`))
  process.once('SIGTERM', async () => {
    server.closeAllConnections()
    server.close()
    await stop()
    process.exit(0)
  })
}
