"""Where issues and pull requests live: reading what was asked, telling what came of it."""
