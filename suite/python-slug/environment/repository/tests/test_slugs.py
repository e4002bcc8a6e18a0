import unittest

from slugs import slug


class SlugsTest(unittest.TestCase):
    def test_words(self) -> None:
        self.assertEqual(slug("A tale"), "a-tale")
