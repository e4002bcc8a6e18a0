"""The critique stage: asks a model for its opinion on the change of a run, once, after the
verification.

The opinion is shown to people and decides nothing: a run without one ends in the same way. The
request and the reply are bounded, and the call is paid from the run's budget.
"""

import json
import logging
import queue
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pydantic import ConfigDict, ValidationError

from resolver.config.model_settings import ServiceSettings
from resolver.config.templates import render
from resolver.controller.limits import find_reached_limit
from resolver.errors import LimitReached, ModelError, ResolverError
from resolver.events.lifecycle import CritiqueCompleted
from resolver.events.run_log import RunLog
from resolver.events.stores import MemoryStore
from resolver.events.stream import EventStream
from resolver.github.text.markdown import (
    shorten_text,
)
from resolver.llm.base import Model
from resolver.models.base import DeferredModel
from resolver.models.critique import Critique, CritiqueAnswer, UnrelatedFile
from resolver.models.pull_request import ThreadRequest
from resolver.models.run import Comment, Patch, Task
from resolver.models.truncate import marker_for, shorten_thread, truncate_middle
from resolver.models.verification import Verification
from resolver.runs.stages import PreparedRun
from resolver.runs.wiring.models import CRITIC, open_models, recording_of
from resolver.security.invisible_text import with_invisible_shown

logger = logging.getLogger("resolver.runs.critique")

# Maximum lengths of the parts of the request, in characters.
MAX_DIFF_LENGTH = 60_000
MAX_TEXT_LENGTH = 12_000
MAX_COMMENTS_LENGTH = 8_000
MAX_EVIDENCE_LENGTH = 12_000

MAX_LISTED_FILES = 300
"""Maximum number of changed files that are named in the request."""

MAX_REPLY_LENGTH = 20_000
"""Number of characters of the reply that are read."""

MAX_REASON_LENGTH = 600
MAX_UNRELATED = 10
"""Maximum number of unrelated files that are kept."""

DEFAULTS = ServiceSettings(max_output_tokens=8_000, retries=1, timeout=120.0)
"""Parameters of the call, unless the operator sets others for the service in `services`."""

_BINARY = re.compile(r"^GIT binary patch\n.*?(?=^diff --git |\Z)", re.DOTALL | re.MULTILINE)


class _UnrelatedPart(DeferredModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    path: str
    reason: str = ""


class _Reply(DeferredModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    addresses_issue: CritiqueAnswer
    reason: str = ""
    unrelated: tuple[_UnrelatedPart, ...] = ()


@dataclass(frozen=True)
class CritiqueRequest:
    """The request for an opinion on a change.

    verification: what the project's checks show; None if they were not executed.
    raise_if_stopped: raises RunStopped if a person has stopped the run, which the run's `control`
        tells while the model is asked.
    """

    prepared: PreparedRun
    patch: Patch
    verification: Verification | None
    raise_if_stopped: Callable[[], None] = lambda: None


def critique_change(request: CritiqueRequest, log: RunLog) -> Critique | None:
    """Return a model's opinion on the change; None if there is none. Raises no ResolverError.

    If the log has an opinion on the same change, or a failure to get one, no model is asked. Raises
    RunStopped as soon as a person stops the run.
    """
    known = (e for e in log.state.events if isinstance(e, CritiqueCompleted))
    event = next((e for e in known if e.tree == request.patch.tree), None)
    if event is None:
        event = log.stream.add(_ask_until_stopped(request, log))
    return event.critique


def _ask_until_stopped(request: CritiqueRequest, log: RunLog) -> CritiqueCompleted:
    """Return the result of asking the model, unless the run is stopped meanwhile.

    A call can't be interrupted in every provider's client. It is made in a thread of its own, with
    a stream of its own, so that nothing of it reaches the log of a run that was stopped.
    """
    has_ended: queue.SimpleQueue[bool] = queue.SimpleQueue()
    events, results = MemoryStore(), list[CritiqueCompleted]()

    def work() -> None:
        try:
            results.append(_ask(request, log, log.stream.nested(events)))
        finally:
            has_ended.put(True)

    request.prepared.request.control.interrupt_with(lambda: has_ended.put(False))
    threading.Thread(target=work, name="critique", daemon=True).start()
    while not has_ended.get():
        request.raise_if_stopped()
    for event in events:  # a reply that has arrived is paid for
        log.stream.add(event)
    request.raise_if_stopped()
    failed = CritiqueCompleted(tree=request.patch.tree, failure="an internal error of Resolver")
    return results[0] if results else failed


def _ask(request: CritiqueRequest, log: RunLog, stream: EventStream) -> CritiqueCompleted:
    """Return the model's opinion, or why there is none. stream: for the events of its call."""
    prepared, patch, tree = request.prepared, request.patch, request.patch.tree
    try:
        reached = find_reached_limit(log.state, prepared.request.now())
        if reached in {"budget", "time"}:
            raise LimitReached(reached, f"the run's {reached} is used up")
        prompt = critique_prompt(prepared.task, patch, request.verification)
        critic = _open_critic(prepared, log, stream)
        critique = ask_critic(critic, prepared.redactor.redact_text(prompt), patch)
    except ResolverError as error:
        logger.warning("no opinion on the change of run %s: %s", prepared.request.run, error.what)
        return CritiqueCompleted(tree=tree, failure=error.what)
    return CritiqueCompleted(tree=tree, critique=critique)


def _open_critic(prepared: PreparedRun, log: RunLog, stream: EventStream) -> Model:
    """Return the model of the service, with DEFAULTS below what the operator has set for it."""
    settings, run, redact = prepared.settings, prepared.request.run, prepared.redactor.redact_text
    given = {k: v for k, v in settings.services.get(CRITIC, ServiceSettings()) if v is not None}
    services = {**settings.services, CRITIC: DEFAULTS.model_copy(update=given)}
    settings = settings.model_copy(update={"services": services})
    recording = recording_of(settings)
    return open_models(settings, recording, log.state, run, redact)(stream, CRITIC)


def ask_critic(model: Model, prompt: str, patch: Patch) -> Critique:
    """Return the model's opinion on the change, by one call.

    prompt: see `critique_prompt`. Raises ModelError, also if the reply can't be understood, and
    LimitReached if the rest of the budget does not suffice.
    """
    completion = model.complete(
        [
            {"role": "system", "content": render("agent/critique.md.j2").strip()},
            {"role": "user", "content": prompt},
        ]
    )
    reply = _last_reply(completion.text[:MAX_REPLY_LENGTH])
    if reply is None:
        raise ModelError(
            "the reply is not an opinion in the requested form",
            "set another model for the service `critic` in `services`",
        )
    # A path that is not part of the change can't be unrelated to it.
    changed = {change.path for change in patch.files}
    named = {
        unrelated_file.path: unrelated_file
        for unrelated_file in reversed(reply.unrelated)
        if unrelated_file.path in changed
    }
    unrelated = tuple(
        UnrelatedFile(
            path=unrelated_file.path,
            reason=shorten_text(unrelated_file.reason, MAX_REASON_LENGTH // 3),
        )
        for unrelated_file in reversed(list(named.values()))
    )
    return Critique(
        model=model.name,
        addresses_issue=reply.addresses_issue,
        reason=shorten_text(reply.reason.strip(), MAX_REASON_LENGTH),
        unrelated=unrelated[:MAX_UNRELATED],
        cost=completion.cost,
    )


def _last_reply(text: str) -> _Reply | None:
    """Return the last JSON object of the text that has the requested form.

    Models reason before they decide, so the last one is the answer.
    """
    replies: list[_Reply] = []
    for data in _json_objects(text):
        try:
            replies.append(_Reply.model_validate(data))
        except ValidationError:
            continue
    return replies[-1] if replies else None


def _json_objects(text: str) -> Iterator[object]:
    """Yield the JSON objects in a text, without those that are inside of others."""
    decoder, position = json.JSONDecoder(), 0
    while (position := text.find("{", position)) >= 0:
        try:
            data, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            position += 1
        else:
            yield data


@dataclass(frozen=True)
class CritiqueContent:
    """The values of the prompt that the model is shown.

    threads: the conversations on lines that the request is about.
    evidence: results of the project's checks, as JSON.
    """

    title: str
    body: str
    comments: tuple[Comment, ...]
    threads: tuple[str, ...]
    instruction: str
    files: str
    diff: str
    evidence: str


def critique_prompt(task: Task, patch: Patch, verification: Verification | None) -> str:
    """Return what the model is shown: the request, the change and the results of the checks.

    Each part is shortened to a fixed length, and enclosed in lines with a marker that occurs in
    none of them.
    """
    content = CritiqueContent(
        title=task.title[:MAX_TEXT_LENGTH],
        body=truncate_middle(task.body, MAX_TEXT_LENGTH),
        comments=tuple(shorten_thread(task.comments, MAX_COMMENTS_LENGTH)),
        threads=tuple(_conversation(asked) for asked in task.asked[:10]),
        instruction=truncate_middle(task.trigger.instruction, MAX_TEXT_LENGTH),
        files=_changed_files(patch),
        diff=_shortened_diff(patch),
        evidence=_evidence(verification),
    )
    template = "agent/critique_request.md.j2"
    marker = marker_for(render(template, content, marker=""))
    return render(template, content, marker=marker).strip()


def _conversation(asked: ThreadRequest) -> str:
    comments = (f"{comment.author}: {comment.body}" for comment in asked.thread.comments)
    return truncate_middle("\n\n".join([asked.thread.path, *comments]), MAX_COMMENTS_LENGTH)


def _changed_files(patch: Patch) -> str:
    lines = [
        f"{file.path} ({file.status}, +{file.additions or 0} -{file.deletions or 0})"
        for file in patch.files[:MAX_LISTED_FILES]
    ]
    more = len(patch.files) - len(lines)
    return with_invisible_shown("\n".join([*lines, *([f"and {more} more"] if more else [])]))


def _shortened_diff(patch: Patch) -> str:
    """Return the diff without the content of binary files, and without its middle if it is long."""
    # A huge diff is cut before it is searched.
    half = 4 * MAX_DIFF_LENGTH
    data = patch.diff
    if len(data) > 2 * half:
        data = data[:half] + b"\n" + data[-half:]
    text = _BINARY.sub("(binary)\n", data.decode("utf-8", "replace"))
    return truncate_middle(with_invisible_shown(text), MAX_DIFF_LENGTH)


def _evidence(verification: Verification | None) -> str:
    if verification is None:
        return "(not executed)"
    text = verification.evidence().model_dump_json()
    return with_invisible_shown(truncate_middle(text, MAX_EVIDENCE_LENGTH))
