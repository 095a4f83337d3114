"""The chapters' experiments, one module for each question. Results are arrays and tables, never plots."""
