"""Publishes the result of a run: a branch and its pull request, a review, and replies in its
threads."""
