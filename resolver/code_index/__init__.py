"""Code index: the definitions, references and words of a commit, searched by LocAgent."""
