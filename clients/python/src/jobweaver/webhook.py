"""Verification of the messages that tell a callbackUrl of the end of a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from standardwebhooks import Webhook as _StandardWebhook
from standardwebhooks import WebhookVerificationError

from .models import JobSummary

__all__ = ["Ending", "Webhook", "WebhookVerificationError"]


@dataclass(frozen=True)
class Ending:
    """A verified message. It comes at least once: keep the ids that you have taken. The job is as it was when it ended."""

    id: str
    job: JobSummary


class Webhook:
    """Verifies messages with what `jobweaver webhook-secrets end` prints: one secret, and while it is changed two."""

    def __init__(self, *secrets: str) -> None:
        if not secrets:
            raise ValueError("a webhook needs a secret")
        self._by = [_StandardWebhook(secret) for secret in secrets]

    def verify(self, body: bytes | str, headers: Mapping[str, str]) -> Ending:
        """Reads a message, given the body as it came, before anything has parsed it.

        Raises WebhookVerificationError where the message is not signed with one of the secrets, was changed on its way, or is over
        five minutes old: answer 401.
        """
        plain = {name.lower(): value for name, value in headers.items()}
        for by in self._by:
            try:
                by.verify(body, plain)
            except WebhookVerificationError:
                continue
            return Ending(plain["webhook-id"], JobSummary.model_validate_json(body))
        raise WebhookVerificationError("no secret fits")
