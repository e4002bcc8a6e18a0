import unittest

from duration import show


class DurationTest(unittest.TestCase):
    def test_seconds(self) -> None:
        self.assertEqual(show(9), "9s")

    def test_minutes(self) -> None:
        self.assertEqual(show(61), "1m 1s")
