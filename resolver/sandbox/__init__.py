"""The action execution server: the part of Resolver that runs inside the sandbox.

It uses the standard library only. This folder is copied into the toolbox unchanged and runs there
under the toolbox's Python, so it may not import any module of `resolver` outside this folder.

Every run waits for its start, most of which is imports. Values are therefore named tuples:
importing `dataclasses` and making a dozen of them takes a quarter of the start.
"""
