"""Text embeddings from an embedding model behind litellm, with a cache on disk."""

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path

from resolver.errors import ModelError
from resolver.llm.base import ModelConfig
from resolver.llm.library import entry_of, litellm, suppress_pydantic_warnings, wire_name
from resolver.llm.request import access
from resolver.models.run import Completion, Tokens

MAX_TEXT = 8_000
"""Maximum length of a text that is embedded, in characters. All common models accept that much."""

Vector = Sequence[float]


class Embedder:
    """Queries one embedding model.

    config: name, address and key of the model.
    cache: folder of the cached vectors.
    on_reply: called with the tokens and the cost of each request.
    """

    def __init__(
        self, config: ModelConfig, cache: Path, on_reply: Callable[[Completion], None]
    ) -> None:
        self._config = config
        self._cache = cache
        self._on_reply = on_reply

    def vectors(self, texts: Sequence[str]) -> list[Vector]:
        """Return a unit vector for each text. Raises ModelError."""
        texts = [text[:MAX_TEXT] for text in texts]
        vectors = {
            text: cached_vector
            for text in texts
            if (cached_vector := self._read_cached(text)) is not None
        }
        missing = [text for text in dict.fromkeys(texts) if text not in vectors]
        for text, queried_vector in zip(
            missing, self._query(missing) if missing else (), strict=True
        ):
            vectors[text] = queried_vector
            self._write_cached(text, queried_vector)
        return [vectors[text] for text in texts]

    def _query(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of texts that are not cached. Raises ModelError."""
        package = litellm()
        config = self._config
        name = wire_name(config)
        access_parameters = {
            key: value for key, value in access(config, name).items() if value is not None
        }
        try:
            with suppress_pydantic_warnings():
                response = package.embedding(
                    model=name,
                    input=list(texts),
                    **access_parameters,
                    api_base=config.base_url,
                    api_version=config.api_version,
                    timeout=config.timeout,
                    max_retries=0,
                )
                # Match the vectors to the texts by index, whatever the order in the response.
                rows = sorted(response.data, key=lambda row: row["index"])
                vectors = [_normalized([float(x) for x in row["embedding"]]) for row in rows]
        except (package.exceptions.openai.OpenAIError, *_MALFORMED_RESPONSE) as error:
            # The message of the error may contain the request, so only its type is reported.
            raise ModelError(
                f"the embedding model {config.model} could not be called ({type(error).__name__})",
                "check `embedding` in the setting `services`, or remove it",
            ) from None
        if len(vectors) != len(texts) or len({len(vector) for vector in vectors}) != 1:
            raise ModelError(f"the embedding model {config.model} sent vectors that do not fit")
        usage = getattr(response, "usage", None)
        tokens = Tokens(input=getattr(usage, "prompt_tokens", 0) or 0)
        self._on_reply(Completion(model=config.model, tokens=tokens, cost=self._cost(tokens)))
        return vectors

    def _cost(self, tokens: Tokens) -> float | None:
        entry = entry_of(wire_name(self._config)) or {}
        price = entry.get("input_cost_per_token")
        return None if price is None else float(price) * tokens.input

    def _cache_path(self, text: str) -> Path:
        key = f"{self._config.model}\n{self._config.base_url}\n{text}".encode(errors="replace")
        return self._cache / f"{hashlib.sha256(key).hexdigest()}.json"

    def _read_cached(self, text: str) -> Vector | None:
        try:
            return _normalized([float(x) for x in json.loads(self._cache_path(text).read_text())])
        except (OSError, ValueError, TypeError):
            return None

    def _write_cached(self, text: str, vector: Vector) -> None:
        try:
            self._cache.mkdir(parents=True, exist_ok=True)
            self._cache_path(text).write_text(json.dumps([round(x, 6) for x in vector]))
        except OSError:
            return  # not cached: the model is queried again next time


_MALFORMED_RESPONSE = (AttributeError, KeyError, TypeError, ValueError, OSError)


def cosine_similarity(first: Vector, second: Vector) -> float:
    """Return the cosine similarity of two unit vectors, 0 if their dimensions differ."""
    return (
        sum(x * y for x, y in zip(first, second, strict=False))
        if len(first) == len(second)
        else 0.0
    )


def _normalized(vector: list[float]) -> Vector:
    length = math.sqrt(sum(x * x for x in vector))
    if not length or not math.isfinite(length):
        raise ValueError("a vector without a direction")
    return [x / length for x in vector]
