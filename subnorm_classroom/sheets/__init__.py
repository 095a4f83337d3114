"""Sheets: made, divided into variants, and handed out."""
