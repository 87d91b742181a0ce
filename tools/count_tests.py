# SPDX-License-Identifier: Apache-2.0
"""count_tests.py BUILD...: names failed and skipped tests of build folders, then prints the line
`N passed, N failed, N skipped`. A ctest entry that is a googletest program counts by its own tests
(they are in BUILD/results/NAME.json), any other counts as one. With CI=true a skip is a failure,
since there everything that a test needs can be had. Exit status: 1 where something failed.
"""

import json
import os
import pathlib
import sys
import xml.etree.ElementTree


class Count:
    def __init__(self):
        self.passed, self.failed, self.skipped = 0, [], []

    def skip(self, name, reason):
        if os.environ.get("CI") == "true":
            self.failed.append(f"{name}: skipped, which CI does not allow: {reason}")
        else:
            self.skipped.append(f"{name}: {reason}")

    def program(self, name, results):
        """Adds the tests of a googletest program; returns how many of them failed."""
        failed = 0
        for suite in results["testsuites"]:
            for test in suite["testsuite"]:
                full = f"{name}: {suite['name']}.{test['name']}"
                if test.get("result") == "SKIPPED":
                    notes = test.get("skipped", [{}])
                    text = notes[0].get("message", "no reason given").strip().splitlines()[-1]
                    self.skip(full, text.removeprefix("Skipped").strip() or "no reason given")
                elif test.get("result") == "SUPPRESSED" or test.get("status") == "NOTRUN":
                    self.skip(full, "disabled")
                elif "failures" in test:
                    self.failed.append(full)
                    failed += 1
                else:
                    self.passed += 1
        return failed

    def build(self, folder):
        report = folder / "results" / "ctest.xml"
        if not report.exists():
            self.failed.append(f"{folder.name}: no tests were run")
            return
        cases = list(xml.etree.ElementTree.parse(report).getroot().iter("testcase"))
        if not cases:
            self.failed.append(f"{folder.name}: there are no tests")
        for case in cases:
            name, status = case.get("name"), case.get("status")
            label = name if folder.name == "build" else f"{name} ({folder.name})"
            details = folder / "results" / f"{name}.json"
            if status in ("notrun", "disabled"):
                skipped = case.find("skipped")
                reason = "not run" if skipped is None else skipped.get("message", "not run")
                if "Unable to find executable" in reason or status == "notrun" and "SKIP" not in reason:
                    self.failed.append(f"{label}: {reason}")
                else:
                    self.skip(label, reason)
            elif details.exists():
                failed = self.program(label, json.loads(details.read_text()))
                if status != "run" and failed == 0:  # after its last test: a leak, a crash at exit
                    self.failed.append(f"{label}: the program failed outside its tests")
            elif status == "run":
                self.passed += 1
            else:
                self.failed.append(label)


def main():
    count = Count()
    for folder in sys.argv[1:]:
        count.build(pathlib.Path(folder))
    for text in count.skipped:
        print("skipped:", text)
    for text in count.failed:
        print("FAILED:", text)
    print(f"{count.passed} passed, {len(count.failed)} failed, {len(count.skipped)} skipped")
    sys.exit(1 if count.failed else 0)


main()
