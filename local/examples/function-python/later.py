import json
import time
import urllib.error
import urllib.request

from serve import Refusal


def later(function):
    """Answers 202, and calls back with the result of function."""

    def take(headers, event):
        if "x-callback-url" not in headers:
            raise Refusal("FUNCTION.NO_CALLBACK", "there is no X-Callback-Url")

        def after():
            progress = {"percent": 50, "message": "counting"}
            call_back(headers, event, 1, {"status": "PROGRESS", "progress": progress})
            call_back(headers, event, 6, outcome(function, event))

        return 202, None, after

    return take


def outcome(function, event):
    """Makes the body of a callback from the result of a function."""
    try:
        return {"status": "COMPLETED", "output": function(event)}
    except Refusal as refusal:
        code, message, retryable = refusal.code, refusal.message, False
    except Exception as error:
        code, message, retryable = "FUNCTION.FAILED", str(error), True
    return {"status": "FAILED", "errorCode": code, "message": message, "retryable": retryable}


def call_back(headers, event, tries, callback):
    """Sends a callback about an attempt. If that fails, it repeats the callback after 1, 2, 4 … seconds: a
    callback that arrives twice counts once. Without any callback, the attempt fails at its deadline, and
    the job is retried.
    """
    callback |= {"jobId": event.get_subject(), "attempt": int(event.get_extension("attempt") or 0)}
    for number in range(tries):
        if number > 0:
            time.sleep(2 ** (number - 1))
        try:
            return post(headers, json.dumps(callback).encode())
        except OSError as error:
            print("callback failed for", event.get_id(), error, flush=True)


def post(headers, body):
    """Raises OSError if another try may help."""
    request = urllib.request.Request(headers["x-callback-url"], body, {
        "Content-Type": "application/json",
        "X-Callback-Secret": headers.get("x-callback-secret", ""),
    })
    try:
        urllib.request.urlopen(request, timeout=30).close()
    except urllib.error.HTTPError as error:
        if error.code >= 500 or error.code == 429:
            raise
        print("callback refused:", error.code, error.read(4096), flush=True)
