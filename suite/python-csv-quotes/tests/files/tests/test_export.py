import unittest

from export import line


class ExportTest(unittest.TestCase):
    def test_plain(self) -> None:
        self.assertEqual(line(["a", "b"]), "a,b")

    def test_comma(self) -> None:
        self.assertEqual(line(["Doe, Ada", "b"]), '"Doe, Ada",b')

    def test_quote(self) -> None:
        self.assertEqual(line(['a"b']), '"a""b"')

    def test_break(self) -> None:
        self.assertEqual(line(["a\nb"]), '"a\nb"')
