"""Domain values that several packages share."""
