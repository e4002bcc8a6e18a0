"""Client of the Model Context Protocol. Servers run on the host, in the sandbox, or at a URL.

Specification: https://modelcontextprotocol.io/specification
"""
