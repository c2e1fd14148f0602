import json
import time
import urllib.error
import urllib.request

from serve import Refusal


def later(function):
    """Answers 202, and calls back with what function makes of the event."""

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
    """What became of an event, in a callback's words."""
    try:
        return {"status": "COMPLETED", "output": function(event)}
    except Refusal as refusal:
        code, message, retryable = refusal.code, refusal.message, False
    except Exception as error:
        code, message, retryable = "FUNCTION.FAILED", str(error), True
    return {"status": "FAILED", "errorCode": code, "message": message, "retryable": retryable}


def call_back(headers, event, tries, word):
    """Says a word about an attempt, and again after 1, 2, 4 … seconds where it was not heard: a word that
    comes twice counts once. Not heard at all, the attempt fails at its deadline, and the job's retries are
    for that.
    """
    word |= {"jobId": event.get_subject(), "attempt": int(event.get_extension("attempt") or 0)}
    for number in range(tries):
        if number > 0:
            time.sleep(2 ** (number - 1))
        try:
            return post(headers, json.dumps(word).encode())
        except OSError as error:
            print("nobody heard a callback for", event.get_id(), error, flush=True)


def post(headers, body):
    """Raises OSError where trying again may help."""
    request = urllib.request.Request(headers["x-callback-url"], body, {
        "Content-Type": "application/json",
        "X-Callback-Secret": headers.get("x-callback-secret", ""),
    })
    try:
        urllib.request.urlopen(request, timeout=30).close()
    except urllib.error.HTTPError as error:
        if error.code >= 500 or error.code == 429:
            raise
        print("a callback is refused for good:", error.code, error.read(4096), flush=True)
