"""The sentences of a verdict, one for each tag, without a full stop.

A check in class adds the numbers to them; the grader, whose inputs are secret, gives them as they are.
"""

CHANGED = "an input was changed: work on a copy"

#: How a result differs from the right one.
DIFFERENCES = {
    "value": "the values are not right",
    "shape": "the shape is not right",
    "dtype": "the values are right, but the dtype is not",
    "type": "the type of the result is not right",
    "keys": "the keys of the result are not right",
    "count": "the number of results is not right",
    "list_length": "a list in the result is too long or too short",
    "in_place": f"the values are right, but {CHANGED}",
    "calls": "the values are right, but a function among the inputs is called too often or too seldom",
    "no_error": "an error was expected, and none was raised",
    "message": "the error is right, but its message does not name the value that is wrong",
}

SENTENCES = DIFFERENCES | {
    "not_done": "not done yet",
    "no_function": "an answer is a function, and this is something else",
}
