"""Client of the Model Context Protocol. Servers run on the host, in the sandbox, or elsewhere.

Specification: https://modelcontextprotocol.io/specification
"""
