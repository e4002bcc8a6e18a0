"""The address of the documentation, which an installed package does not contain."""

DOCS = "https://github.com/OWNER/resolver/blob/main/docs"
"""The folder docs/ where Resolver is published. scripts/release.sh replaces OWNER/resolver."""
