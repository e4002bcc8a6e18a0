import unittest

from tally import Money


class MoneyTest(unittest.TestCase):
    def test_parse_and_print(self):
        for text in ("0.00", "12.50", "-3.07"):
            self.assertEqual(str(Money.parse(text)), text)

    def test_not_an_amount(self):
        for text in ("", "1.5", "1,50", "abc", "--1"):
            with self.assertRaises(ValueError):
                Money.parse(text)

    def test_even_split(self):
        self.assertEqual(Money.parse("50.00").split(4), [Money(1250)] * 4)

    def test_refund_split(self):
        self.assertEqual(Money.parse("-9.00").split(3), [Money(-300)] * 3)


if __name__ == "__main__":
    unittest.main()
