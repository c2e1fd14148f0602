"""Verification of deliveries: messages about the ends of jobs to their callbackUrl."""

from __future__ import annotations

from base64 import b64decode
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


def _check(secret: str) -> None:
    try:
        if secret.startswith("whsec_") and b64decode(secret.removeprefix("whsec_"), validate=True):
            return
    except ValueError:
        pass
    raise ValueError("a webhook secret is whsec_ and base64, as jobweaver webhook-secrets prints it") from None


class Webhook:
    """Verifies messages with the secrets that `jobweaver webhook-secrets end` prints: one, or two during a change of the secret.

    Blanks and line ends around a secret are not part of it.
    """

    def __init__(self, *secrets: str) -> None:
        if not secrets:
            raise ValueError("a webhook needs a secret")
        for secret in secrets:
            _check(secret.strip())
        self._by = [_StandardWebhook(secret.strip()) for secret in secrets]

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
