"""Values of handlers as JSON."""

from __future__ import annotations

import json
import math
from typing import Any

from pydantic import BaseModel

from .attempt import NotRetryable


def json_of(value: Any, name: str, what: str) -> str:
    """Returns a value as JSON, or fails the attempt for good: another run of the handler would end in the same way."""
    try:
        wrong = _flaw(value, name, ())
        if wrong is None:
            return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_dumped)
    except RecursionError:
        wrong = f"{name} is nested too deeply"
    except (TypeError, ValueError) as error:
        wrong = f"{name}: {error}"
    raise NotRetryable(f"{what} has no JSON form: {wrong}", error_code="WORKER.INVALID_OUTPUT")


def _dumped(model: BaseModel) -> Any:
    return model.model_dump(mode="json", by_alias=True)


def _flaw(value: Any, path: str, above: tuple[int, ...]) -> str | None:
    """Names the first part of a value that JSON cannot hold, or that the gateway does not store."""
    if value is None or isinstance(value, int):
        return None
    if isinstance(value, str):
        return _text_flaw(value, path)
    if isinstance(value, float):
        return None if math.isfinite(value) else f"{path} is {value}"
    if id(value) in above:
        return f"{path} is a cycle"
    within = (*above, id(value))
    if isinstance(value, BaseModel):
        return _flaw(_dumped(value), path, within)
    parts: list[str | None] = [f"{path} is a {type(value).__name__}"]
    if isinstance(value, dict):
        parts = [_key_flaw(key, path) or _flaw(one, f"{path}.{key}", within) for key, one in value.items()]
    elif isinstance(value, list | tuple):
        parts = [_flaw(one, f"{path}[{i}]", within) for i, one in enumerate(value)]
    return next((part for part in parts if part is not None), None)


def _key_flaw(key: Any, path: str) -> str | None:
    if not isinstance(key, str | int | float | None):
        return f"{path} has a key that is a {type(key).__name__}"
    return _flaw(key, f"{path}.{key}", ())


def _text_flaw(text: str, path: str) -> str | None:
    if "\0" in text:
        return path.replace("\0", "\\0") + " contains the character \\u0000"
    try:
        text.encode()
    except UnicodeEncodeError:
        return f"{path} contains half of a surrogate pair"
    return None
