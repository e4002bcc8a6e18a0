"""The stages of one run, from a request to its result, and the wiring of its parts."""
