"""Says which line a test guards: `make mutate` takes the line away and expects that test to fail or to hang.

    @guards("services/worker/muster_worker/attempt.py", "self.delivery.lease.ack()  # after the result", rule="I3")
    async def test_a_task_whose_result_is_stored_is_not_run_again(muster): ...

`line` is text that occurs once in the file. Without `replace` the statement that begins there is left out, with it the
text becomes that. `case` names one case of a parametrised test, `seconds` how long that test may take. The arguments
are literals or constants of the test file, because `scripts/guarded_lines.py` reads them from the source. At run time
the decorator does nothing.
"""

from collections.abc import Callable
from typing import TypeVar

F = TypeVar("F", bound=Callable[..., object])


def guards(
    file: str, line: str, *, rule: str, replace: str | None = None, case: str = "", seconds: int = 12
) -> Callable[[F], F]:
    """This test fails when the line is taken away."""
    del file, line, rule, replace, case, seconds  # read from the source by scripts/guarded_lines.py

    def unchanged(test: F) -> F:
        return test

    return unchanged
