"""PURE: two histories out of one log, and the metadata. Each has a form that grows with the log, one fact at a time.

model_messages(events)  ModelHistory.add(event)   what the model gets
timeline(events)        Timeline.add(event)       what a person sees
metadata(events)        Metadata.add(event)       what a list shows
"""

from tarmac.tasks.views.metadata import Metadata, metadata
from tarmac.tasks.views.model_history import ModelHistory, model_messages
from tarmac.tasks.views.timeline import Item, Timeline, timeline

__all__ = ["Item", "Metadata", "ModelHistory", "Timeline", "metadata", "model_messages", "timeline"]
