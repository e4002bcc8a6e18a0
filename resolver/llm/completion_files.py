"""Files with the requests and replies of all model calls, for debugging."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from resolver.errors import ModelError
from resolver.llm.base import ChatMessage, Model, ToolSpec, WrappedModel
from resolver.models.run import Completion

logger = logging.getLogger("resolver.llm")

Redact = Callable[[str], str]
"""Returns the text with the secrets replaced."""


class FiledModel(WrappedModel):
    """A model whose calls are written to `folder`, one JSON file each, numbered from 1.

    redact: applied to all texts that are written.

    Only the owner can read the files. A file that can't be written is skipped with a logged
    warning; the run continues.
    """

    def __init__(self, model: Model, folder: Path, redact: Redact) -> None:
        super().__init__(model)
        self._folder = folder
        self._redact = redact

    def complete(
        self, messages: list[ChatMessage], tools: list[ToolSpec] | None = None
    ) -> Completion:
        request = {"model": self.name, "messages": messages, "tools": tools}
        try:
            completion = self._model.complete(messages, tools)
        except ModelError as error:
            self._write_call({**request, "error": error.what})
            raise
        self._write_call({**request, "completion": completion.model_dump(mode="json")})
        return completion

    def _write_call(self, call: dict[str, Any]) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            number = sum(1 for _ in self._folder.glob("*.json")) + 1
            path = self._folder / f"{number:05}.json"
            path.touch(mode=0o600)
            path.write_text(json.dumps(self._clean(call), ensure_ascii=True, indent=1))
        except OSError as error:
            logger.warning("a call to the model was not written to %s: %s", self._folder, error)

    def _clean(self, value: Any) -> Any:
        match value:
            case str():
                return self._redact(value)
            case dict():
                return {self._redact(str(k)): self._clean(v) for k, v in value.items()}
            case list() | tuple():
                return [self._clean(v) for v in value]
            case _:
                return value
