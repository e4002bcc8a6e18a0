"""Condensers: they decide what a conversation that grows too long forgets, and what is shown in its
place.

There is one protocol (`base.py`) and one small class per module; `registry.py` creates them by
name.
"""
