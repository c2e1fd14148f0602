import json
import os
import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from standardwebhooks import Webhook

MOST_BYTES = 1 << 20

# Limits how many events are handled at once. Further ones are answered with 503 and Retry-After.
places = threading.BoundedSemaphore(int(os.environ.get("AT_ONCE", 8)))


class Refusal(Exception):
    """The event is invalid and the attempt is not retried. After any other exception the event is sent again."""

    def __init__(self, code, message, status=400):
        super().__init__(message)
        self.code, self.message, self.status = code, message, status


def now(function):
    """Answers an event with the result of function."""
    return lambda headers, event: (200, function(event), None)


def verify(headers, body):
    """Checks the signature with WEBHOOK_SECRET, if that is set."""
    secret = os.environ.get("WEBHOOK_SECRET")
    try:
        if secret:
            Webhook(secret).verify(body, headers, json_parse=False)
    except Exception as failure:  # a header may be broken in many ways
        raise Refusal("FUNCTION.BAD_REQUEST", str(failure), 401) from failure


class Request(BaseHTTPRequestHandler):
    routes = {}
    timeout = 30  # seconds, for a client that sends nothing

    def do_POST(self):
        if not places.acquire(blocking=False):
            self.read()
            return self.answer(503, error("FUNCTION.BUSY", "all places are taken"), [("Retry-After", "1")])
        after = None
        try:
            status, body, after = self.take(self.read())
            data = encode(body)
        except Refusal as refusal:
            status, data = refusal.status, error(refusal.code, refusal.message)
        except Exception as failure:
            status, data = 500, error("FUNCTION.FAILED", str(failure))
        if not after:
            places.release()
        try:
            self.answer(status, data)
        finally:
            if after:
                threading.Thread(target=finish, args=[after]).start()

    def read(self):
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(min(length, MOST_BYTES + 1))
        left = length - len(body)
        while left > 0:  # a response before the end of its request may get lost
            left -= len(self.rfile.read(min(left, MOST_BYTES))) or left
        return body

    def take(self, body):
        if self.path not in self.routes:
            raise Refusal("FUNCTION.BAD_REQUEST", "there is nothing here", 404)
        if len(body) > MOST_BYTES:
            raise Refusal("FUNCTION.BAD_REQUEST", "the body is too large", 413)
        headers = {name.lower(): value for name, value in self.headers.items()}
        verify(headers, body)
        try:
            event = from_http_event(HTTPMessage(headers, body))
        except Exception as failure:
            raise Refusal("FUNCTION.BAD_REQUEST", f"this is no CloudEvent: {failure}") from failure
        return self.routes[self.path](headers, event)

    def answer(self, status, data, headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def encode(body):
    return b"" if body is None else json.dumps(body).encode()


def error(code, message):
    return encode({"errorCode": code, "message": message})


def finish(after):
    """Runs the rest after the response, and frees the place."""
    try:
        after()
    finally:
        places.release()


def serve(routes):
    """Listens until a signal, and then finishes the events that it has begun."""
    Request.routes = routes
    address = os.environ.get("HOST", ""), int(os.environ.get("PORT", 8080))
    ThreadingHTTPServer.daemon_threads = False  # server_close also waits for threads that call back
    server = ThreadingHTTPServer(address, Request)
    for number in signal.SIGTERM, signal.SIGINT:
        signal.signal(number, lambda *_: threading.Thread(target=server.shutdown).start())
    print("listening on", server.server_port, flush=True)
    server.serve_forever()
    server.server_close()  # waits for the requests
