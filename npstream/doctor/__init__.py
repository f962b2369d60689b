"""What will go wrong with a group, and what to do about it."""
