"""What happened, on disk: one append-only file of events for each run."""

from runner.record.transcript import Transcript, find_transcript, list_transcripts, read_events

__all__ = ["Transcript", "find_transcript", "list_transcripts", "read_events"]
