import unittest

from pages import page, page_count


class PagesTest(unittest.TestCase):
    def test_full_pages(self) -> None:
        self.assertEqual(page_count(10, 5), 2)

    def test_rows(self) -> None:
        self.assertEqual(page([1, 2, 3], 2, 2), [3])

    def test_last_page(self) -> None:
        self.assertEqual(page_count(11, 5), 3)

    def test_no_rows(self) -> None:
        self.assertEqual(page_count(0, 5), 0)
