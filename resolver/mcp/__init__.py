"""Servers of the Model Context Protocol: talked to by the host, on its side or in the sandbox."""
