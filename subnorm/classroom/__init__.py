"""The teacher's side of the exercises: ``python -m subnorm.classroom`` releases sheets, and grades what comes back.

It works in a checkout of the course, where the source notebooks are.
"""
