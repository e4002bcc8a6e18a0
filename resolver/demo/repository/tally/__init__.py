from tally.bill import Bill
from tally.ledger import Ledger
from tally.money import Money

__all__ = ["Bill", "Ledger", "Money"]
