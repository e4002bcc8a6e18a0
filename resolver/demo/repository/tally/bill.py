"""One bill: somebody paid it, some people share it."""

from dataclasses import dataclass

from tally.money import Money


@dataclass(frozen=True)
class Bill:
    title: str
    amount: Money
    paid_by: str
    shared_by: list[str]

    def balances(self) -> dict[str, Money]:
        """What each person gets back (positive) or owes (negative) for this bill."""
        balances = {self.paid_by: self.amount}
        for person, share in zip(self.shared_by, self.amount.split(len(self.shared_by))):
            balances[person] = balances.get(person, Money(0)) - share
        return balances
