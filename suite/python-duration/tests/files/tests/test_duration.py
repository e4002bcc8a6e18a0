import unittest

from duration import show


class DurationTest(unittest.TestCase):
    def test_seconds(self) -> None:
        self.assertEqual(show(9), "9s")

    def test_minutes(self) -> None:
        self.assertEqual(show(61), "1m 1s")

    def test_hour(self) -> None:
        self.assertEqual(show(3600), "1h 0m 0s")

    def test_day(self) -> None:
        self.assertEqual(show(90061), "25h 1m 1s")
