"""All bills of a flat and the balance of each person."""

from tally.bill import Bill
from tally.money import Money


class Ledger:
    def __init__(self) -> None:
        self._bills: list[Bill] = []

    def add(self, bill: Bill) -> None:
        self._bills.append(bill)

    def balances(self) -> dict[str, Money]:
        """Each person's balance over all bills. They add up to zero."""
        total: dict[str, Money] = {}
        for bill in self._bills:
            for person, amount in bill.balances().items():
                total[person] = total.get(person, Money(0)) + amount
        return total
