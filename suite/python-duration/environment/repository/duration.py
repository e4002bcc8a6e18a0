"""Shows durations."""


def show(seconds):
    """Return seconds in words."""
    minutes, rest = divmod(seconds, 60)
    return f"{minutes}m {rest}s" if minutes else f"{rest}s"
