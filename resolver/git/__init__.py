"""Git on the host: clone, diff, merge, push and patch policy."""
