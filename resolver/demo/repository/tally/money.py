"""An amount of money in whole cents."""

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Money:
    cents: int

    @classmethod
    def parse(cls, text: str) -> "Money":
        """`"12.50"` -> Money(1250). Raises ValueError for anything else than [-]digits[.dd]."""
        sign = -1 if text.startswith("-") else 1
        whole, _, fraction = text.removeprefix("-").partition(".")
        if not whole.isdigit() or not (fraction == "" or (fraction.isdigit() and len(fraction) == 2)):
            raise ValueError(f"not an amount: {text!r}")
        return cls(sign * (int(whole) * 100 + int(fraction or 0)))

    def __add__(self, other: "Money") -> "Money":
        return Money(self.cents + other.cents)

    def __sub__(self, other: "Money") -> "Money":
        return Money(self.cents - other.cents)

    def __neg__(self) -> "Money":
        return Money(-self.cents)

    def __str__(self) -> str:
        sign = "-" if self.cents < 0 else ""
        return f"{sign}{abs(self.cents) // 100}.{abs(self.cents) % 100:02d}"

    def split(self, ways: int) -> "list[Money]":
        """The amount in `ways` shares."""
        if ways < 1:
            raise ValueError("an amount is split in one share at least")
        return [Money(int(self.cents / ways))] * ways
