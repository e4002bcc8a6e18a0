"""Splits rows into pages."""


def page_count(rows, size):
    """Return how many pages of `size` rows are needed."""
    return rows // size


def page(rows, number, size):
    """Return the rows of page `number`, counted from 1."""
    return rows[(number - 1) * size : number * size]
