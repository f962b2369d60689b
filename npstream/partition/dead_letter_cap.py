"""The cap on dead letters: a topic full of rubbish pauses its partition instead of being drained."""

from npstream.errors import StateCorrupt

BLOCK = 1000
"""Records in one block: long enough for a rate, short enough to stop early."""


class DeadLetterCap:
    """Counts records in fixed blocks, so that the verdict does not depend on batching."""

    def __init__(self, share: float, seen: int = 0, bad: int = 0) -> None:
        self.share = share
        self.seen = seen
        self.bad = bad

    def count(self, n: int) -> None:
        """Take note of `n` records; a new block starts with a clean sheet."""
        self.seen += n
        if self.seen >= BLOCK:
            self.seen %= BLOCK
            self.bad = 0

    def admits_one(self) -> bool:
        """Count one dead letter, unless its block has had as many as the cap allows."""
        if self.bad + 1 > self.share * BLOCK:
            return False
        self.bad += 1
        self.count(1)
        return True

    def copy(self) -> "DeadLetterCap":
        """One that counts on from here by itself."""
        return DeadLetterCap(self.share, self.seen, self.bad)

    def exceeded(self, name: str, offset: int, reason: str) -> StateCorrupt:
        """The error for the operator when a dead letter was not admitted.

        A restart alone meets the same events with the same counts, and pauses again: the way on is a higher cap.
        """
        return StateCorrupt(
            f"{name}: more than {100 * self.share:g}% of a block of {BLOCK} events are bad, the last at offset "
            f"{offset} ({reason}). Look at the dead-letter topic and fix the producer. What it has sent stays in the "
            "topic: to go on past it, set events.dead_letter_cap to 1 and restart the workers, and when the partition "
            f"has caught up (`npstream lag`) set events.dead_letter_cap to {self.share:g} and restart them again"
        )
