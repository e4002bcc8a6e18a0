"""Everything that knows GitHub: the client, events, context, comments and text."""
