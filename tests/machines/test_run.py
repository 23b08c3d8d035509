"""The runner's own tests: a scenario that was not tried must not look like one that passed."""

import os
import unittest
from unittest import mock

import run
from world import Failed, Skipped


def ends(error):
    """What becomes of a scenario that ends like this."""
    def scenario(_):
        if error:
            raise error
    try:
        return run.tried(scenario, None)
    except Failed as failed:
        return failed


class Untried(unittest.TestCase):
    def test_where_everything_has_to_be_there_it_has_failed(self):
        program, lacking = Skipped("no swtpm"), Skipped("one processor", cannot="processors")
        for required, error, expected in [
            (None, None, None),
            (None, program, "no swtpm"),
            ("", program, "no swtpm"),
            ("0", program, "no swtpm"),
            (None, lacking, "one processor"),
            ("1", None, None),
            ("1", program, Failed),
            ("1", lacking, "one processor"),
            ("1", Failed("it was wrong"), Failed),
        ]:
            with self.subTest(required=required, error=error):
                environment = {} if required is None else {"FAIRWAY_TEST_REQUIRE": required}
                with mock.patch.dict(os.environ, environment):
                    if required is None:
                        os.environ.pop("FAIRWAY_TEST_REQUIRE", None)
                    said = ends(error)
                self.assertTrue(isinstance(said, Failed) if expected is Failed else said == expected, repr(said))

    def test_what_a_host_lacks_has_a_reason(self):
        with self.assertRaises(ValueError):
            Skipped("it is late", cannot="time")

    def test_each_scenario_counts_once(self):
        self.assertEqual(run.summary(3, ["a"], ["b"]), "3 scenarios: 1 passed, 1 failed, 1 skipped; failed: a; skipped: b")


if __name__ == "__main__":
    unittest.main()
