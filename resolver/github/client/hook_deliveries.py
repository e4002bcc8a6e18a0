"""What GitHub keeps of a webhook's deliveries: which ones failed, and what they said.

GitHub keeps them for three days and sends none again by itself.
Source: https://docs.github.com/en/webhooks/using-webhooks/handling-failed-webhook-deliveries
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from resolver.github.client.access import GitHubAccess

PAGE_SIZE = 100

_NEXT = re.compile(r'[?&]cursor=([^&>]+)[^>]*>;\s*rel="next"')


class HookDelivery(BaseModel):
    """One attempt to deliver an event. guid: the same for each attempt, as the header
    `X-GitHub-Delivery` has it. status_code: of the answer; 0 where there was none."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: int
    guid: str
    delivered_at: datetime
    event: str
    status_code: int = 0

    @property
    def is_received(self) -> bool:
        """Whether it was answered as it should be."""
        return 200 <= self.status_code < 300


class _Request(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    payload: dict[str, Any]


class _Delivery(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    request: _Request


class _HookConfig(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    url: str = ""


class _Hook(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    id: int
    config: _HookConfig = _HookConfig()


@dataclass(frozen=True)
class HookDeliveries:
    """The deliveries of one webhook. path: of the webhook in the REST API."""

    access: GitHubAccess
    path: str

    def attempts(self, since: datetime, max_pages: int) -> Iterator[HookDelivery]:
        """Attempts from that moment on, the newest first. Raises ForgeError."""
        cursor = ""
        for _ in range(max_pages):
            query = f"?per_page={PAGE_SIZE}" + (f"&cursor={cursor}" if cursor else "")
            with self.access.asking("list the webhook's deliveries", "the webhook: read"):
                headers, answer = self._requester.requestJsonAndCheck(
                    "GET", f"{self.path}/deliveries{query}"
                )
                page = [HookDelivery.model_validate(each) for each in answer]
            for attempt in page:
                if attempt.delivered_at < since:
                    return
                yield attempt
            following = _NEXT.search(headers.get("link", ""))
            if following is None:
                return
            cursor = following[1]

    def payload(self, attempt: HookDelivery) -> dict[str, Any]:
        """What was to be delivered. Raises ForgeError."""
        with self.access.asking("read a delivery of the webhook", "the webhook: read"):
            _, answer = self._requester.requestJsonAndCheck(
                "GET", f"{self.path}/deliveries/{attempt.id}"
            )
            return _Delivery.model_validate(answer).request.payload

    @property
    def _requester(self) -> Any:
        return self.access.client().requester


def repository_hooks(access: GitHubAccess, repository: str, url: str) -> list[HookDeliveries]:
    """The repository's webhooks that deliver to `url`. Raises ForgeError."""
    path = f"/repos/{repository}/hooks"
    with access.asking(f"list the webhooks of {repository}", "webhooks: read"):
        _, answer = access.client().requester.requestJsonAndCheck("GET", f"{path}?per_page=100")
        hooks = [_Hook.model_validate(each) for each in answer]
    return [HookDeliveries(access, f"{path}/{h.id}") for h in hooks if h.config.url == url]
