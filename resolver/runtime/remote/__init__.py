"""Client side of the remote runtime: a sandbox of another machine over HTTP(S).

The server side is in runtime/service/.
"""
