"""The timeline of a request: what happened in it, step by step, from its log and its events."""

from muster_client.timeline.build import timeline
from muster_client.timeline.document import document_of
from muster_client.timeline.event_notes import StoredEvent
from muster_client.timeline.steps import Step, StepStatus, Timeline, Totals, What

__all__ = ["Step", "StepStatus", "StoredEvent", "Timeline", "Totals", "What", "document_of", "timeline"]
