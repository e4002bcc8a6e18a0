"""Tests of loading litellm in the background."""

import json
import subprocess
import sys
import threading

import pytest

from resolver.llm.base import ModelConfig
from resolver.llm.library import LIBRARY_LOCK, litellm, preload_with, rehearse
from tests.llm.conftest import KEY, Build
from tests.llm.test_providers import ALL, CHAT, CLAUDE, TOOLS
from tests.parts.model_endpoint import ModelEndpoint, reply

UNUSED = {"litellm.litellm_core_utils.default_encoding", "mcp", "mcp_types", "fastapi"}
"""What no call needs, and takes tens of megabytes."""

FIRST_CALL = """
import json, sys
from resolver.llm.base import ModelConfig
from resolver.llm.litellm_model import LiteLLMModel
from resolver.llm.library import preload_model
name, url, key, tools = json.loads(sys.argv[1])
config = ModelConfig(model=name, base_url=url, api_key=key)
preload_model(config).join()
loaded = set(sys.modules)
model = LiteLLMModel(config, on_retry=lambda *_: None)
text = model.complete([{"role": "user", "content": "hello"}], tools).text
print(json.dumps({"text": text, "late": sorted(set(sys.modules) - loaded),
                  "all": sorted(sys.modules)}))
"""


@pytest.mark.parametrize("name", [CHAT, CLAUDE])
def test_the_first_call_after_preloading_imports_nothing(
    model_endpoint: ModelEndpoint, name: str
) -> None:
    model_endpoint.script(reply("done"))
    url = model_endpoint.url if name == CHAT else model_endpoint.root
    given = json.dumps([name, url, KEY, TOOLS])
    done = subprocess.run(
        [sys.executable, "-c", FIRST_CALL, given], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert found["text"] == "done"
    assert found["late"] == []
    assert not UNUSED & set(found["all"])


@pytest.mark.parametrize("name", ALL)
def test_a_rehearsal_sends_nothing(model_endpoint: ModelEndpoint, asked: Build, name: str) -> None:
    rehearse(asked(name, stream=True).config)
    assert model_endpoint.requests == []
    assert model_endpoint.tokens == 0


def test_litellm_is_waited_for_while_it_is_preloaded() -> None:
    may_end, used = threading.Event(), threading.Event()
    loading = preload_with(lambda: used.is_set() or may_end.wait())
    assert not LIBRARY_LOCK.acquire(blocking=False)
    user = threading.Thread(target=lambda: (litellm(), used.set()))
    user.start()
    assert not used.is_set()
    may_end.set()
    user.join()
    loading.join()
    assert used.is_set()


def test_an_error_while_preloading_is_left_to_the_next_user(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def load() -> None:
        raise ImportError("no module named litellm")

    preload_with(load).join()
    assert capfd.readouterr() == ("", "")
    assert litellm().completion


def test_the_tokenizer_is_loaded_when_tokens_are_counted() -> None:
    text = "Fix it, please."
    tokenizer = litellm().main.encoding
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_claudes_tokenizer_works_without_its_parsed_file() -> None:
    package = litellm()
    assert not hasattr(package.utils, "json_data")
    model = next(filter(package.utils.uses_anthropic_tokenizer, package.anthropic_models))
    text = "Fix it, please."
    tokens = package.encode(model=model, text=text)
    assert package.utils._select_tokenizer(model)["type"] == "huggingface_tokenizer"
    assert package.decode(model=model, tokens=tokens) == text


def test_an_unknown_model_is_rehearsed_too() -> None:
    rehearse(ModelConfig(model="some-model", base_url="http://127.0.0.1:9/v1"))


INTERRUPTED = """
import sys
from resolver.llm.library import litellm

class FailsOnce:
    failed = False

    def find_spec(self, name, path=None, target=None):
        if name == "litellm.main" and not self.failed:
            self.failed = True
            raise RuntimeError("interrupted")

sys.meta_path.insert(0, FailsOnce())
try:
    litellm()
except RuntimeError as error:
    print(error)
print(litellm().exceptions.BadRequestError.__name__)
"""


def test_an_interrupted_import_is_repeated_from_the_beginning() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["interrupted", "BadRequestError"], done.stderr


OVERTAKEN = """
import warnings
from resolver.llm.library import litellm

other_thread = warnings.catch_warnings()
other_thread.__enter__()
litellm()
other_thread.__exit__(None, None, None)

from pydantic import TypeAdapter
from typing_extensions import ReadOnly, TypedDict
TypeAdapter(TypedDict("Entry", {"id": ReadOnly[str]}))
warnings.warn("Pydantic serializer warnings: none", UserWarning)
"""


def test_the_warnings_of_litellms_types_stay_suppressed_whatever_other_threads_do() -> None:
    """A `catch_warnings` block that ends puts the filters back that were there when it began."""
    done = subprocess.run(
        [sys.executable, "-c", OVERTAKEN], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
