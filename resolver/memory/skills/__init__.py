"""Skills: what a repository, its organisation and Resolver itself know that a run may need.

Reading them is in reading.py, choosing them in recalling.py, the words of both in prompts/.
"""
