"""Fuzzing of every parser of outside data.

A target is a function `def target(data: bytes) -> None` that gives the data to one parser. It fails
by raising: the parser raises nothing but Resolver's errors, and the target asserts what holds for
its result (limits, idempotence, a round trip). `make test` tries a few dozen derandomized inputs of
each, `make fuzz` new ones for minutes (`scripts/fuzz.py`).
"""
