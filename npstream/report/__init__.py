"""Pages, figures, and the statistics in them."""
