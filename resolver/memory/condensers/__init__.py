"""Condensers: what a conversation may forget when it grows too long, and what stands in for it.

One protocol (base.py), one small class a module, put together by name in making.py.
"""
