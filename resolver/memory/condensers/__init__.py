"""Condensers: they decide what a conversation that grows too long forgets, and what is shown in its
place.

The protocol is in `view.py`, small classes are in `rules.py` and `with_model.py`, and `registry.py`
creates them by name.
"""
