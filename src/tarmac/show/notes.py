"""PURE: facts that are one remark between others: what went wrong, what changed in the task itself."""

import math

from tarmac.tasks import events as e

RED, MAGENTA, CYAN, FAINT = "31", "35", "36", "2"


def note_on(event: e.TaskEvent, *, past: bool) -> tuple[str, str] | None:
    """A colour and a text, not yet harmless; None: nothing is said of it. `past`: read in a log, not seen."""
    match event:
        case e.TaskUnpaused():
            return FAINT, "goes on"
        case e.ModelTold(about="mistake", text=text):
            text = text.removeprefix("[ERROR] ")
            said = text if past else text.partition(". ")[0].rstrip(".")  # the rest is advice for the model
            return MAGENTA, f"! the model is told: {said}"
        case e.RequestFailed(what=what, status=status, retry_in=wait):
            code = f" ({status})" if status and str(status) not in what else ""
            return (
                RED,
                f"! the model did not answer: {what}{code}{'' if wait is None else f'; again in {math.ceil(wait)} s'}",
            )
        case e.Noted(what=what, text=text):
            return RED if what == "error" else MAGENTA, f"! {text}"
        case e.ModeSwitched(mode=mode, why=why):
            return CYAN, f"→ mode {mode}{f': {why}' if why else ''}"
        case e.ModelSwitched(model=model):
            return CYAN, f"→ model {model}"
        case e.HistoryCondensed(how=how, tokens_before=before, tokens_after=after):
            sizes = f": {before:,} tokens became {after:,}" if before and after else ""
            return FAINT, f"the conversation was {how}{sizes}"
        case e.HistoryRewound(to=to):
            return MAGENTA, f"– back to {to}: what followed no longer counts"
        case e.CheckpointCreated(checkpoint=checkpoint) if past:
            return FAINT, f"checkpoint {checkpoint}"
        case e.CheckpointRestored(checkpoint=checkpoint):
            return MAGENTA, f"– files are as at the checkpoint {checkpoint}"
        case e.SubtaskStarted(child=child, text=text):
            return CYAN, f"→ subtask {child}: {text}"
        case e.SubtaskFinished(child=child, outcome=outcome, result=result):
            return CYAN, f"← subtask {child} {outcome}: {result}"
        case e.AgentHosted(name=name) if past:
            return FAINT, f"the agent: {name}"
        case e.TaskImported(source=source, name=name):
            return FAINT, f"from {source}: {name}"
        case e.RecordLost(seq=seq, why=why):
            return RED, f"! record {seq} of this task is lost: {why}"
        case e.UnknownEvent(kind=kind):
            return FAINT, f"({kind}: a newer Tarmac knows what this is)"
    return None
