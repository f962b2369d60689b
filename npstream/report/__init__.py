"""Pages, figures, and the statistics that stand in them."""
