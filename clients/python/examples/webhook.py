import os
from http.server import BaseHTTPRequestHandler, HTTPServer

from jobweaver import Webhook, WebhookVerificationError

hook = Webhook(os.environ["WEBHOOK_SECRET"])  # of `jobweaver webhook-secrets end`


class Done(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            end = hook.verify(body, dict(self.headers.items()))
            print(end.id, end.job.job_id, end.job.status, flush=True)
            self.send_response(204)
        except WebhookVerificationError:
            self.send_response(401)
        self.end_headers()


HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Done).serve_forever()
