"""What the chapters measure, one module for each question. Results are arrays and tables, never plots."""
