"""Skills: knowledge for runs that a repository, its organization or Resolver itself provides.

`reading.py` reads them, `recalling.py` decides which ones a run loads; the templates of both are in
the `prompts/` directory.
"""
