"""Reports: feedback, marks and gradebooks, and what the class got wrong."""
