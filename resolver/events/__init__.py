"""The event log: types, stream, stores and the state folded from them."""
