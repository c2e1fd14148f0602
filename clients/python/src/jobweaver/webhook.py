"""Verification of deliveries: messages about the ends of jobs to their callbackUrl."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from standardwebhooks import Webhook as _StandardWebhook
from standardwebhooks import WebhookVerificationError

from .models import JobSummary

__all__ = ["Ending", "Webhook", "WebhookVerificationError"]


@dataclass(frozen=True)
class Ending:
    """A verified message. It arrives at least once: store the ids of handled messages. The job is as it was when it ended."""

    id: str
    job: JobSummary


class Webhook:
    """Verifies messages with the secrets that `jobweaver webhook-secrets end` prints: one, or two during a change of the secret."""

    def __init__(self, *secrets: str) -> None:
        if not secrets:
            raise ValueError("a webhook needs a secret")
        self._by = [_StandardWebhook(secret) for secret in secrets]

    def verify(self, body: bytes | str, headers: Mapping[str, str]) -> Ending:
        """Verifies a message, given the body as it arrived, not parsed.

        Raises WebhookVerificationError if the message is not signed with one of the secrets, was changed, or is over five minutes
        old: answer with 401.
        """
        plain = {name.lower(): value for name, value in headers.items()}
        for by in self._by:
            try:
                by.verify(body, plain)
            except WebhookVerificationError:
                continue
            return Ending(plain["webhook-id"], JobSummary.model_validate_json(body))
        raise WebhookVerificationError("no secret fits")
