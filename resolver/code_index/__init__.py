"""The code index: definitions, references and words of a commit, searched by LocAgent."""
