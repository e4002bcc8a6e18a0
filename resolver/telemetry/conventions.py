"""Names of span attributes, as the semantic conventions of OpenTelemetry define them.

The attributes `gen_ai.*` follow the conventions for generative AI, version 0.1.0, whose status is
Development: https://github.com/open-telemetry/semantic-conventions-genai/tree/v0.1.0/docs/gen-ai.
The others follow the general conventions, version 1.45.0, on which that version depends:
https://github.com/open-telemetry/semantic-conventions/tree/v1.45.0. What neither of them names
begins with `resolver.`.

The conventions have no released attribute for money. `gen_ai.usage.cost` is the name that viewers
read today; a standard one is proposed in
https://github.com/open-telemetry/semantic-conventions-genai/pull/443. As proposed there, only spans
of model calls have it, so that a viewer that adds up all spans counts nothing twice.
"""

import re
from collections.abc import Mapping

SCHEMA_URL = "https://opentelemetry.io/schemas/1.45.0"
"""Schema of the general conventions."""

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
CONVERSATION = "gen_ai.conversation.id"
AGENT_NAME = "gen_ai.agent.name"
REQUEST_MODEL = "gen_ai.request.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHED_TOKENS = "gen_ai.usage.cache_read.input_tokens"
COST = "gen_ai.usage.cost"
TOOL_NAME = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_CALL_ID = "gen_ai.tool.call.id"

SYSTEM_INSTRUCTIONS = "gen_ai.system_instructions"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"

CONTENT_ATTRIBUTES = (
    SYSTEM_INSTRUCTIONS,
    INPUT_MESSAGES,
    OUTPUT_MESSAGES,
    TOOL_ARGUMENTS,
    TOOL_RESULT,
)
"""The attributes with prompts, replies and outputs. They are exported only if a setting asks."""

MCP_METHOD = "mcp.method.name"
ERROR_TYPE = "error.type"
EXIT_CODE = "process.exit.code"
VCS_PROVIDER = "vcs.provider.name"
VCS_OWNER = "vcs.owner.name"
VCS_REPOSITORY = "vcs.repository.name"
VCS_CHANGE = "vcs.change.id"
VCS_BASE_REVISION = "vcs.ref.base.revision"
VCS_HEAD_REVISION = "vcs.ref.head.revision"

RUN = "resolver.run.id"
TRIGGER = "resolver.trigger"
ISSUE = "resolver.issue.number"
STATE = "resolver.state"
VERDICT = "resolver.verdict"
RUN_COST = "resolver.cost"
RUN_TOKENS = "resolver.tokens"
ITERATIONS = "resolver.iterations"
SERVICE = "resolver.service"
ACTION = "resolver.action"
PHASE = "resolver.phase"
CHECK_TREE = "resolver.check.tree"
REPLAY = "resolver.replay"

CHAT = "chat"
EXECUTE_TOOL = "execute_tool"
INVOKE_AGENT = "invoke_agent"
INVOKE_WORKFLOW = "invoke_workflow"

_PROVIDERS: Mapping[str, str] = {
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "bedrock_converse": "aws.bedrock",
    "cohere_chat": "cohere",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "moonshot": "moonshot_ai",
    "vertex_ai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
"""The conventions' names of providers that litellm names differently."""

_PROVIDER_BY_MODEL = (
    (re.compile(r"claude", re.IGNORECASE), "anthropic"),
    (re.compile(r"gpt|chatgpt|o\d", re.IGNORECASE), "openai"),
    (re.compile(r"gemini", re.IGNORECASE), "gcp.gen_ai"),
)


def provider_name(model: str) -> str:
    """Return the conventions' name of the provider of a model, as litellm names the model.

    "litellm" if the name does not tell.
    """
    prefix, has_prefix, _ = model.partition("/")
    if not has_prefix:
        prefix, has_prefix, _ = model.partition(":")  # replay:FILE, scripted:FILE
    if has_prefix:
        return _PROVIDERS.get(prefix, prefix)
    return next((name for pattern, name in _PROVIDER_BY_MODEL if pattern.match(model)), "litellm")
