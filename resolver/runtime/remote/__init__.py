"""A sandbox of another machine over HTTP(S), from the client; sandbox_service/ is the server."""
