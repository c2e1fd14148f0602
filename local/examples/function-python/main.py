"""A function for jobs of type FUNCTION: it counts the words of a text. To make your own function, change
count. serve.py and later.py can stay as they are.
"""

from later import later
from serve import Refusal, now, serve


def count(event):
    """Takes an event whose data is {"text": "…"}, and returns the output of its job."""
    data = event.get_data()
    if not isinstance(data, dict) or not isinstance(data.get("text"), str):
        raise Refusal("WORDS.NO_TEXT", 'the data has to be {"text": "…"}')
    return {"words": len(data["text"].split())}


if __name__ == "__main__":
    serve({
        "/": now(count),  # answers with the output
        "/later": later(count),  # answers 202, and calls back with the output
    })
