import unittest

from export import line


class ExportTest(unittest.TestCase):
    def test_plain(self) -> None:
        self.assertEqual(line(["a", "b"]), "a,b")
