"""Sandboxes for other machines, over HTTP(S): the server's side of resolver/runtime/remote."""
