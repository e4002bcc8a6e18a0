"""Skills: knowledge for runs that a repository, its organization or Resolver itself provides.

`library.py` reads them, `recaller.py` decides which ones a run loads; the templates of both are in
the `prompts/` directory.
"""
