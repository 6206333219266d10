"""Cases that are too many, and too short, to be tests of their own."""

from functools import wraps
from inspect import signature


def loop_over(name, values):
    """Like `pytest.mark.parametrize`, but within one test. An error names the value.

    Collecting and reporting a test takes longer than a case of a millisecond.
    """

    def decorate(test):
        @wraps(test)
        def run(*arguments, **named):
            for value in values:
                try:
                    test(*arguments, **named, **{name: value})
                except Exception as error:
                    error.add_note(f"{name} = {getattr(value, '__name__', value)}")
                    raise

        parameters = signature(test).parameters.values()
        run.__signature__ = signature(test).replace(
            parameters=[each for each in parameters if each.name != name]
        )
        return run

    return decorate
