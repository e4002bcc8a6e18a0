import unittest

from accounts import settings


class AccountsTest(unittest.TestCase):
    def test_changes(self) -> None:
        self.assertEqual(settings({"rows": 5})["rows"], 5)

    def test_defaults_stay(self) -> None:
        settings({"theme": "dark"})
        self.assertEqual(settings()["theme"], "light")
