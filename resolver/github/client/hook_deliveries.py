"""Reads the recent deliveries of a webhook: which ones failed, and their payloads.

GitHub keeps deliveries for three days and does not repeat failed ones by itself. Source:
https://docs.github.com/en/webhooks/using-webhooks/handling-failed-webhook-deliveries
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import AliasPath, Field

from resolver.github.client.access import GitHubAccess
from resolver.github.client.answers import ApiAnswer
from resolver.github.client.resources import read_pages


class HookDelivery(ApiAnswer):
    """One attempt to deliver an event.

    Attributes:
        guid: The value of the header `X-GitHub-Delivery`, the same for every attempt.
        status_code: Status of the answer; 0 when there was none.
    """

    id: int
    guid: str
    delivered_at: datetime
    event: str
    status_code: int = 0

    @property
    def is_received(self) -> bool:
        """Return True if the delivery was answered with success."""
        return 200 <= self.status_code < 300


class _Delivery(ApiAnswer):
    """A delivery with its request."""

    payload: dict[str, Any] = Field(validation_alias=AliasPath("request", "payload"))


@dataclass(frozen=True)
class HookDeliveries:
    """The deliveries of one webhook. `path` is the webhook's path in the REST API."""

    access: GitHubAccess
    path: str

    def attempts(self, since: datetime, max_pages: int) -> Iterator[HookDelivery]:
        """Yield the attempts since a moment, newest first. Raises ForgeError.

        At most `max_pages` pages of `PAGE_SIZE` attempts are read.
        """
        with self.access.wrap_errors("list the webhook's deliveries", "the webhook: read"):
            url = f"{self.path}/deliveries"
            for page in read_pages(self.access.requester(), url, {}, max_pages):
                for attempt in [HookDelivery.model_validate(row) for row in page]:
                    if attempt.delivered_at < since:
                        return
                    yield attempt

    def payload(self, attempt: HookDelivery) -> dict[str, Any]:
        """Return the payload of a delivery. Raises ForgeError."""
        with self.access.wrap_errors("read a delivery of the webhook", "the webhook: read"):
            url = f"{self.path}/deliveries/{attempt.id}"
            _, answer = self.access.requester().requestJsonAndCheck("GET", url)
            return _Delivery.model_validate(answer).payload
