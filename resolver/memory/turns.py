"""Groups the log into turns: a model's reply, the actions parsed from it, and their results.

A turn is the unit that is shown or forgotten. Its calls and results are never separated, because
providers reject a tool call without a result.
"""

from dataclasses import dataclass, field

from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import ActionBase, ObservationBase, Source
from resolver.events.log import Event
from resolver.events.state import State
from resolver.models.issue_context import Picture

Note = a.Message | life.Warned | ObservationBase
"""A message between two turns: the user's message, a warning, recalled knowledge, or an observation
without a matching action."""

_SILENT = (a.CondensationRequest, a.ChangeAgentState)


@dataclass
class Turn:
    """Represents one turn. `reply` is None for the head of the log and for an action that belongs
    to no reply.

    results: observations by the id of the action that they answer.
    notes: messages after this turn and before the next one.
    """

    reply: life.ModelReplied | None = None
    actions: list[ActionBase] = field(default_factory=list)
    results: dict[int, ObservationBase] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)

    @property
    def ids(self) -> set[int]:
        """Ids of the events that are shown or forgotten together."""
        own = {self.reply.id} if self.reply else set()
        return own | {x.id for x in self.actions} | {x.id for x in self.results.values()}


class History:
    """Holds the turns of one state and updates them from new events only.

    turns: the first one is the head, which has notes but no reply.
    task_pictures: images of the task, which belong to the user's first message.
    forgotten, masked: event ids from all condensations so far.
    summary, notes: those of the last condensation that forgot something. They cover everything that
        was forgotten.
    condensation_wanted: there is a CondensationRequest that no Condensation has answered yet.

    What the run itself does in the sandbox, such as the setup, is not part of the conversation. The
    knowledge that it recalls for the agent is.
    """

    def __init__(self) -> None:
        self._seen = 0
        self._last: Event | None = None
        self._clear()

    def look(self, state: State) -> bool:
        """Process new events.

        Return True if something that was already processed has changed: there was a condensation,
        or the state is not a continuation of the last one.
        """
        changed = False
        if self._seen and not self._is_continued_by(state):
            self._seen = 0
            self._clear()
            changed = True
        for event in state.events[self._seen :]:
            changed = self._take(event) or changed
        self._seen = len(state.events)
        self._last = state.events[-1] if state.events else None
        return changed

    def _clear(self) -> None:
        self.turns: list[Turn] = [Turn()]
        self.system: life.SystemPrompt | None = None
        self.task_pictures: tuple[Picture, ...] = ()
        self._task_words = -1
        self.forgotten: set[int] = set()
        self.masked: set[int] = set()
        self._own: set[int] = set()
        self.summary = ""
        self.notes = ""
        self.condensation_wanted = False

    def pictures_of(self, note: Note) -> tuple[Picture, ...]:
        """Return the images of the task if the note is the task, otherwise nothing."""
        return self.task_pictures if note.id == self._task_words else ()

    def _is_continued_by(self, state: State) -> bool:
        return len(state.events) >= self._seen and state.events[self._seen - 1] is self._last

    def _take(self, event: Event) -> bool:
        current = self.turns[-1]
        match event:
            case life.RunStarted(task=task):
                self.task_pictures = tuple(each for each in task.pictures if each.data)
            case life.SystemPrompt():
                self.system = self.system or event
            case life.ModelReplied():
                self.turns.append(Turn(reply=event))
            case a.Message(source=Source.USER) | life.Warned(to_agent=True):
                if isinstance(event, a.Message) and self._task_words < 0:
                    self._task_words = event.id
                current.notes.append(event)
            case a.CondensationRequest():
                self.condensation_wanted = True
            case life.Condensation(forgotten=forgotten):
                self.forgotten.update(forgotten)
                self.masked.update(event.masked)
                if forgotten:
                    self.summary, self.notes = event.summary, event.notes
                self.condensation_wanted = False
                return True
            case o.AgentStateChanged():
                pass
            case ActionBase(source=Source.ENVIRONMENT):
                self._own.add(event.id)
            case ActionBase(source=Source.AGENT) if not isinstance(event, _SILENT):
                self._take_action(event)
            case ObservationBase():
                self._take_observation(event)
            case _:
                pass
        return False

    def _take_action(self, action: ActionBase) -> None:
        reply = self.turns[-1].reply
        if reply is None or reply.id != action.reply:
            self.turns.append(Turn())
        self.turns[-1].actions.append(action)

    def _take_observation(self, observation: ObservationBase) -> None:
        if observation.cause in self._own and not isinstance(observation, o.RecallResult):
            return
        turn = self.turns[-1]
        if observation.cause is not None and any(x.id == observation.cause for x in turn.actions):
            turn.results[observation.cause] = observation
        elif not isinstance(observation, o.Null):
            turn.notes.append(observation)
