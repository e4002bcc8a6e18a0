"""Shell parser: reads shell text without running it."""
