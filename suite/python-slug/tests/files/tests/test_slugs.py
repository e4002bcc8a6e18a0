import unittest

from slugs import slug


class SlugsTest(unittest.TestCase):
    def test_words(self) -> None:
        self.assertEqual(slug("A tale"), "a-tale")

    def test_spaces(self) -> None:
        self.assertEqual(slug("A  tale   of two"), "a-tale-of-two")

    def test_ends(self) -> None:
        self.assertEqual(slug(" Hi! "), "hi")
