"""The progress of a run: its data, and the comment that shows it until the run ends.

`resolver.github.comments.progress_reporter` decides when the comment is written.
"""

import re
from datetime import datetime

from pydantic import Field

from resolver.config.templates import render
from resolver.github.comments.check_history import course_values
from resolver.github.comments.markers import ActiveRunMarker, at_work_marker, died_marker
from resolver.github.text.escape import code_span, single_line
from resolver.github.text.fit import MAX_BODY
from resolver.models.check_history import CheckHistory
from resolver.models.run import Command, FrozenModel, PlanItem, Trigger
from resolver.models.verification import VerificationVerdict
from resolver.trace.markdown import utf16_length
from resolver.trace.plain import money

MOST_PLANNED = 30
"""Maximum number of steps of a plan that are shown."""

_URL = re.compile(r"https?://[^\s<>()]+")


class RunProgress(FrozenModel):
    """Represents the progress of a run. Made by `ProgressReporter`, read by the forge.

    `until` is the time by which the run has certainly ended, including all extensions that comments
    may grant. `iterations` and `max_iterations` are the number so far and the limit. `cost` is in
    US dollars, None if a price is unknown.
    """

    trigger: Trigger
    run: str
    since: datetime
    until: datetime
    mention: str = "@agent"
    job: str = Field(default="", description="As in AtWork.")
    log_url: str = Field(default="", description="Page where the run can be followed, if any.")
    waits: str = Field(default="", description="What it waits for before it can begin.")
    read: bool = False
    base: str = Field(default="", description="Commit that was cloned.")
    sandbox: bool = Field(default=False, description="True when the sandbox is ready.")
    iterations: int = 0
    max_iterations: int = 0
    cost: float | None = 0.0
    paused: bool = False
    plan: tuple[PlanItem, ...] = ()
    course: CheckHistory = CheckHistory()
    worked: bool = Field(default=False, description="True when the agent's work has ended.")
    published: bool = False
    verifies: bool = Field(
        default=False, description="True when Resolver executes the project's checks itself."
    )
    verifying: bool = Field(default=False, description="True once it has executed a check.")
    verdict: VerificationVerdict | None = Field(
        default=None, description="What the checks show about the newest change."
    )

    @property
    def at_work(self) -> ActiveRunMarker:
        """The content of the comment's marker."""
        return ActiveRunMarker(self.run, self.since, self.until, self.job)


def progress_body(progress: RunProgress) -> str:
    """Return the comment of an active run, without the plan if it would be too long."""
    trigger, course = progress.trigger, progress.course
    kinds = {Command.REVIEW: "review", Command.QUESTION: "answer"}
    text = render(
        "comments/progress.md.j2",
        login=single_line(trigger.actor.login, 100),
        mention=code_span(progress.mention),
        stop=code_span(f"{progress.mention} stop"),
        run=code_span(progress.run),
        since=f"{progress.since:%Y-%m-%d %H:%M} UTC",
        asked=f"{trigger.at:%Y-%m-%d %H:%M:%S} UTC",
        thing="pull request" if trigger.is_pull_request and not trigger.issue else "issue",
        waits=single_line(progress.waits, 300),
        paused=progress.paused,
        resume=code_span(f"{progress.mention} resume"),
        read=progress.read,
        base=code_span(progress.base[:12]),
        sandbox=progress.sandbox,
        iterations=progress.iterations,
        most=progress.max_iterations,
        spent="" if progress.cost is None else money(progress.cost),
        plan=[{"title": single_line(i.title, 200), "status": i.status} for i in progress.plan],
        most_planned=MOST_PLANNED,
        files=course.files,
        **course_values(course),
        kind=kinds.get(trigger.command, "change"),
        worked=progress.worked,
        published=progress.published,
        verifies=progress.verifies,
        verifying=progress.verifying,
        verdict=progress.verdict,
        log_url=progress.log_url if _URL.fullmatch(progress.log_url) else "",
    )
    marker = at_work_marker(trigger.key, progress.at_work)
    text = re.sub(r"\n{3,}", "\n\n", text.strip())
    body = f"{marker}\n\n{text}\n"
    if utf16_length(body) > MAX_BODY:
        return progress_body(progress.model_copy(update={"plan": ()}))
    return body


def died_body(body: str, work: ActiveRunMarker, mention: str, page: str) -> str:
    """Return the text that replaces `body`, the comment of an active run that was killed.

    `page` is the URL of the repository's workflow runs, to which the id of the run is appended.
    """
    url = f"{page}/{work.job.partition('.')[0]}"
    text = render(
        "comments/died.md.j2",
        run=code_span(work.run),
        since=f"{work.since:%Y-%m-%d %H:%M} UTC",
        mention=code_span(mention),
        go_on=code_span(f"{mention} continue"),
        log_url=url if work.job and _URL.fullmatch(url) else "",
    )
    return f"{died_marker(body)}\n\n{text.strip()}\n"
