"""What a worker may do, whom it trusts, and what it never says."""
