"""What the notebooks and exercise sheets import beside `subnorm`: experiments, figures, the trained model, the checks.

Nothing here is needed to use the norms themselves. `checks` and `stories` need NumPy alone, so they run in a page, too.
"""
