"""The action server: the part of Resolver that runs INSIDE the sandbox.

Standard library only: this folder is copied into the toolbox as it is and runs there
under the toolbox's Python. Nothing of `resolver` outside this folder may be imported.
"""
