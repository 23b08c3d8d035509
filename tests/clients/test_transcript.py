"""The runner's own tests: a comparison that cannot fail would make every transcript worthless."""

import os
import pathlib
import tempfile
import unittest

import transcript
from transcript import Step, Transcript


def printed(command):
    with tempfile.TemporaryDirectory() as scratch:
        return transcript.run_command(command, {"PATH": os.environ["PATH"], "SCRATCH": scratch}, scratch)


class TranscriptTest(unittest.TestCase):
    def test_output_is_normalised(self):
        for why, text, expected in [
            ("an age in a column", "web   1   5m30s", "web  1  AGE"),
            ("a quantity in a sentence", "at most 100m of cpu", "at most 100m of cpu"),
            ("an identifier", "uid 2d3a1e6c-0000-4000-8000-000000000000.", "uid UID."),
            ("a revision", 'resourceVersion: "123"', "resourceVersion: REVISION"),
            ("a time", "at 2026-01-01T00:00:00Z", "at TIME"),
            ("an indented line keeps its depth", "      deep", "      deep"),
            ("a port", "80:31234/TCP", "80:NODE-PORT/TCP"),
        ]:
            self.assertEqual(printed(f"echo {text!r}"), [expected], why)

    def test_what_an_object_says_of_its_workspace_is_left_out(self):
        for why, text, expected in [
            ("alone in YAML", "metadata:\n  annotations:\n    kcp.io/cluster: ab1\n  name: x", "metadata:\n  name: x"),
            (
                "with others in YAML",
                "  annotations:\n    kcp.io/cluster: ab1\n    note: y\n  name: x",
                "  annotations:\n    note: y\n  name: x",
            ),
            ("in JSON", '{"kcp.io/cluster":"ab1","a":"b"}', '{"a":"b"}'),
            ("described", "Annotations:  kcp.io/cluster: ab1", "Annotations:  <none>"),
            ("in a sentence it stays", "no kcp.io/cluster: ab1", "no kcp.io/cluster: ab1"),
            ("an address", "at SERVER/clusters/root:a-b:c.", "at SERVER."),
        ]:
            self.assertEqual("\n".join(transcript.without_workspace(text.split("\n"))), expected, why)

    def test_exit_codes_and_standard_error_are_output(self):
        self.assertEqual(printed("echo out; echo err >&2; exit 3"), ["out", "err", "[exit 3]"])

    def test_lines_that_look_like_syntax_are_escaped(self):
        self.assertEqual(printed("echo '# a'; echo '$ b'; echo '[c'"), ["\\# a", "\\$ b", "\\[c"])

    def test_a_transcript_survives_reading_and_writing(self):
        text = "# about\n$ one <<END\n> body\n> END\nline\n\nafter a blank\n[exit 1]\n\n## next\n$ two\n$ three\nx\n"
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.txt"
            path.write_text(text)
            script = Transcript.read(path)
            self.assertEqual([step.command for step in script.steps], ["one <<END\nbody\nEND", "two", "three"])
            self.assertEqual(script.steps[0].expected, ["line", "", "after a blank", "[exit 1]"])
            self.assertEqual(script.steps[1].expected, [])
            script.write()
            self.assertEqual(path.read_text(), text)

    def test_each_server_has_its_own_lines(self):
        step = Step([], "x", ["[fairway] ours", "both", "[upstream] theirs"], 1)
        for why, lines, upstream, agrees in [
            ("ours", ["ours", "both"], False, True),
            ("theirs", ["both", "theirs"], True, True),
            ("theirs from us", ["both", "theirs"], False, False),
            ("a line missing", ["ours"], False, False),
            ("a line too many", ["ours", "both", "more"], False, False),
            ("the pod warning is let pass", [transcript.NO_PODS, "ours", "both"], False, True),
            ("but not from upstream", [transcript.NO_PODS, "both", "theirs"], True, False),
        ]:
            self.assertEqual(transcript.agrees(step, lines, upstream)[0], agrees, why)
        wants = Step([], "x", ["[fairway] " + transcript.NO_PODS, "both"], 1)
        self.assertFalse(transcript.agrees(wants, ["both"], False)[0], "an expected warning must come")

    def test_recording_keeps_what_is_about_fairway(self):
        step = Step([], "x", ["[fairway] ours", "old"], 1)
        self.assertEqual(transcript.recorded(step, ["new"]), ["[fairway] ours", "new"])
        self.assertEqual(transcript.recorded(step, ["old"]), step.expected)


if __name__ == "__main__":
    unittest.main()
