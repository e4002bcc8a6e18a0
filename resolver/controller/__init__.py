"""The step loop: limits, stuck detection, delegation, confirmation, and how a run ends."""
