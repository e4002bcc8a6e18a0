"""Git on the host: the clean clone, the change taken out and judged, the branch published."""
