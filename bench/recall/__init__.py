"""What recall is measured on: data sets, rankers to stand beside, and the figures."""
