"""Everything that is specific to GitHub: the client, events, context, comments and text."""
