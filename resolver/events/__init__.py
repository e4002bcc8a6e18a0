"""The event log: event types, stream, stores, and the state derived from the events."""
