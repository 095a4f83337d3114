"""The teacher's side of the exercises: ``python -m subnorm_classroom`` releases sheets and grades submissions.

It needs a checkout of the course, which has the source notebooks.
"""
