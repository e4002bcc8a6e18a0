"""The stages of one run, from its request to its result, and the construction of its parts."""
