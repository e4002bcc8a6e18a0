import unittest

from tally import Bill, Ledger, Money

FLAT = ["ada", "bob", "cleo", "dan"]


class LedgerTest(unittest.TestCase):
    def test_one_bill(self):
        ledger = Ledger()
        ledger.add(Bill("pizza", Money.parse("50.00"), "ada", FLAT))
        self.assertEqual(ledger.balances()["ada"], Money(3750))
        self.assertEqual(ledger.balances()["bob"], Money(-1250))

    def test_balances_add_up_to_zero(self):
        ledger = Ledger()
        ledger.add(Bill("pizza", Money.parse("50.01"), "ada", FLAT))
        ledger.add(Bill("train", Money.parse("100.00"), "bob", FLAT[:3]))
        self.assertEqual(sum(b.cents for b in ledger.balances().values()), 0)


if __name__ == "__main__":
    unittest.main()
