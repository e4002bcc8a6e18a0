"""Spans of a run for OpenTelemetry, made from its event log."""
