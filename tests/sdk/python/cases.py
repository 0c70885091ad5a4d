"""Runs the cases that the command line names, one after the other, and prints what each came to as JSON.

A case is an operation, or OPERATION=MODEL; without a model it is that of the environment.
"""

import json
import os
import sys


def run(operations, describe):
    """Operations take the model and the result to fill; an error is described for the result."""
    results = {}
    for case in sys.argv[1].split(","):
        name, _, model = case.partition("=")
        # What was received before an error stays in the result.
        result = results[case] = {"text": "", "finish": None, "error": None}
        try:
            operations[name](model or os.environ["MODEL"], result)
        except Exception as error:
            result["error"] = {"class": type(error).__name__, "message": str(error), **describe(error)}
    print(json.dumps(results))
