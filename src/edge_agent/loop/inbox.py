"""What comes from outside: short handlers, each one synchronous block that wakes the driver first and appends then."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from edge_agent.core import keys
from edge_agent.core.approval import Decision
from edge_agent.core.errors import Refusal
from edge_agent.core.events import (
    ApprovalMode,
    ApprovalResolved,
    CancelRequested,
    MessageQueued,
    QuestionAnswered,
    QuestionAsked,
    RunCreated,
    RunResumed,
    SubagentStarted,
)
from edge_agent.core.journal import Draft, Journal
from edge_agent.core.ports import Record, StoredFile
from edge_agent.loop import close, decisions, kin, settling
from edge_agent.loop.driver import Driver


@dataclass(frozen=True, slots=True)
class Inbox:
    journal: Journal
    driver: Driver

    def create(
        self, created: RunCreated, fingerprint: str, *, idempotent: bool, files: Sequence[StoredFile] = ()
    ) -> None:
        """The same request under the same Idempotency-Key finds its run; anything else meets 409. `files`: what was
        sent along."""
        if not self.found(fingerprint, idempotent=idempotent):
            self.driver.wake()
            draft, meta = Draft(key=keys.RUN, event=created), self._meta(fingerprint)
            self.journal.append("note", draft, files=files, meta=meta)

    def fork(self, records: Sequence[Record], fingerprint: str, *, idempotent: bool) -> None:
        """Like create, with the records that the fork begins with."""
        if not self.found(fingerprint, idempotent=idempotent):
            self.driver.wake()
            self.journal.begin(records, self._meta(fingerprint))

    def _meta(self, fingerprint: str) -> dict[str, str]:
        return {"fingerprint": fingerprint, "run_id": self.driver.run_id}

    def found(self, fingerprint: str, *, idempotent: bool) -> bool:
        """Whether the run is there already. Raises Refusal where it is that of another request, or was deleted."""
        if self.journal.erased:
            raise deleted()
        if self.journal.refused:
            raise refused()
        if not self.journal.records:
            return False
        if not idempotent:
            raise Refusal(409, "run_exists", "A run with this run_id exists. Leave run_id out, or take another one.")
        if self.journal.log.meta("fingerprint") != fingerprint:
            raise Refusal(
                409,
                "idempotency_conflict",
                "This Idempotency-Key was used with another body. Use a new key for a new run.",
            )
        return True

    def cancel(self, reason: str | None = None) -> None:
        """Of a run that has ended: nothing. Nothing begins after the cancel's record."""
        self._known()
        key = keys.cancel(self.journal.life)
        if self.journal.ended or key in self.journal.records:
            return
        self.driver.wake()
        self.journal.append("input", Draft(key=key, event=CancelRequested(reason=reason)))
        self.driver.cut()

    def cancel_step(self, reason: str | None = None) -> str:
        """The open step, whose key is returned; 409 where none is. It ends blocked and is planned around."""
        self._known()
        if self.journal.ended:
            raise Refusal(409, "run_ended", "The run has ended, so no step of it is open.")
        step = next(self.journal.open_steps(), None)
        if step is None:
            raise Refusal(409, "no_open_step", "No step is open now. A direct run has none: cancel the run instead.")
        key = keys.cancel_step(step)
        if key not in self.journal.records:
            self.driver.wake()
            self.journal.append("input", Draft(key=key, event=CancelRequested(step=step, reason=reason)))
            self.driver.cut(step)
        return step

    def message(self, message_id: str, text: str) -> None:
        """Queued for the next boundary. A repeat of an id changes nothing."""
        self._known()
        if f"msg/{message_id}" in self.journal.records:
            return
        if self.journal.ended:
            message = "The run has ended, so it takes no message. Start a new run that continues it."
            raise Refusal(409, "run_ended", message)
        self.driver.wake()
        queued = MessageQueued(message_id=message_id, text=text)
        self.journal.append("input", Draft(key=f"msg/{message_id}", event=queued))

    def resume(self, reason: str | None = None) -> None:
        """A failed or cancelled run goes on from its log, as a new life. It decides nothing again. With it comes
        what children have cost that answered after the end."""
        self._known()
        ended = self.journal.ended
        if ended is None:
            raise Refusal(
                409, "run_not_ended", "The run has not ended, so there is nothing to resume. Follow its events instead."
            )
        if ended.type == "run.completed":
            raise Refusal(409, "run_completed", "The run is completed. Start a new run to go on from it.")
        if self.journal.created.parent:
            message = "This run is a subagent's, and its parent has taken its result. Fork it, or resume the parent."
            raise Refusal(409, "run_has_parent", message)
        self.driver.wake()
        resumed = Draft(key=keys.life(self.journal.life + 1), event=RunResumed(reason=reason or "request"))
        meta = {"stalled": "0", "restarts": "0", "slice": "closed"}
        self.journal.append("note", resumed, *settling.kept(self.journal), meta=meta, new_life=True)

    def delete(self) -> None:
        """Ends the run where it has not ended, and erases it, and with it its inline children. Others are still told of
        both; a second time changes nothing. A loop that is under way finds its run closed."""
        if self.journal.erased:
            return
        self._known()
        self.driver.wake()
        self.driver.cut()
        close.close(self.driver.run_id, self.journal, close.cancelled(self.journal))
        self.journal.erase([kin.delete(key, started) for key, started in self._inline_children()])

    def _inline_children(self) -> Iterator[tuple[str, SubagentStarted]]:
        """Not those of a run that this one was forked from: they lie in its object."""
        for record in self.journal.types.get("subagent.started", ()):
            started = cast(SubagentStarted, record.event)
            if keys.object_of(started.child_run_id) == keys.object_of(self.driver.run_id):
                yield record.key.removesuffix("/call"), started

    def answer(self, question_id: str, answer: str) -> QuestionAnswered:
        """The first answer stands. 404 for no such question, 409 for another answer, 410 when it is too late."""
        self._known()
        key, question = self._question(question_id)
        given = self.journal.event(f"{key}/answer", QuestionAnswered)
        if given and given.by == "person":
            if given.answer == answer:
                return given
            raise Refusal(409, "already_answered", "The question was answered by a person already, in other words.")
        if given or not self._open(key) or self.journal.clock.now() >= question.expires_at:
            gone = "The question is no longer open: its time is over, or what it was about has ended."
            raise Refusal(410, "question_expired", gone)
        self.driver.wake()
        event = QuestionAnswered(question_id=question_id, answer=answer, by="person")
        self.journal.append("input", Draft(key=f"{key}/answer", event=event))
        return event

    def decide(
        self, call_id: str, decision: Decision, *, arguments_hash: str | None = None, once: bool = False
    ) -> ApprovalResolved:
        """What a person says to a call that waits for it; see decisions.decide."""
        self._known()
        wake = self.driver.wake
        return decisions.decide(self.journal, wake, call_id, decision, arguments_hash=arguments_hash, once=once)

    def change_mode(self, mode: ApprovalMode, *, allowed: Collection[ApprovalMode], tighten: bool = False) -> None:
        """How the next call is judged, also in a run that is at work; see decisions.change_mode."""
        self._known()
        decisions.change_mode(self.journal, mode, allowed=allowed, tighten=tighten)

    def question(self, question_id: str) -> QuestionAsked:
        """Raises Refusal 404."""
        self._known()
        return self._question(question_id)[1]

    def _open(self, question: str) -> bool:
        call = question.rpartition("/ask/")[0]
        return not self.journal.ended and f"{call}/result" not in self.journal.records

    def _question(self, question_id: str) -> tuple[str, QuestionAsked]:
        for record in self.journal.types.get("question.asked", ()):
            question = cast(QuestionAsked, record.event)
            if question.question_id == question_id:
                return record.key, question
        raise Refusal(
            404,
            "unknown_question",
            "This run has asked no such question. GET the run: waiting_for lists the open ones.",
        )

    def _known(self) -> None:
        known(self.journal)


def known(journal: Journal) -> None:
    """Raises Refusal: 410 for a run that was deleted or refused, 404 for one that was never created."""
    if journal.erased:
        raise deleted()
    if journal.refused:
        raise refused()
    if not journal.records:
        raise Refusal(404, "unknown_run", "There is no run with this id. POST /v1/runs starts one.")


def deleted() -> Refusal:
    return Refusal(410, "run_deleted", "This run was deleted: nothing of it is left, and its id is not used again.")


def refused() -> Refusal:
    return Refusal(410, "run_refused", "This subagent was cancelled by its parent before it began: there is no run.")
