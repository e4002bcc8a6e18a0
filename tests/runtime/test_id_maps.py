"""Tests of ids in user namespaces."""

import pytest

from resolver.runtime.id_maps import id_outside


@pytest.mark.parametrize(
    ("id_map", "inside", "outside"),
    [
        ("         0          0 4294967295\n", 1000, 1000),
        ("         0     400000      65536\n", 0, 400_000),
        ("         0     400000      65536\n", 1000, 401_000),
        ("0 1000 1\n1 100000 65535\n", 0, 1000),
        ("0 1000 1\n1 100000 65535\n", 5, 100_004),
        ("0 400000 10\n", 10, 10),
        ("", 7, 7),
    ],
)
def test_an_id_of_a_user_namespace_has_another_one_outside(
    id_map: str, inside: int, outside: int
) -> None:
    assert id_outside(id_map, inside) == outside
