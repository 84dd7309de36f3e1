# SPDX-License-Identifier: BSD-3-Clause
"""What the doctor says of this environment, read by a program as CI does: from the exit status and the JSON document.

Nothing but openreg-doctor is needed: where torch or a backend is missing, that is what it says.
"""

import json
import subprocess
import sys
from importlib.util import find_spec

# A busy machine may need minutes to import torch the first time.
command = [sys.executable, "-m", "openreg_doctor", "--json", "--timeout", "600"]
outcome = subprocess.run(command, capture_output=True, text=True, check=False)
document = json.loads(outcome.stdout)

print(f"{document['device']}: {'healthy' if document['healthy'] else 'not healthy'}, {document['counts']}")
problems = {finding["check"]: finding for finding in document["findings"] if finding["status"] == "problem"}
for name, finding in problems.items():
    print(f"\n{name}: {finding['what']}\n  costs: {finding['costs']}\n  fix: {finding['fix']}")


def check(condition, claim):
    """Ends the program if something is not as it should be."""
    if not condition:
        raise SystemExit(f"WRONG: {claim}")


check(outcome.returncode == (1 if problems else 0), "the exit status is 1 where there are problems")
check(all(finding["costs"] and finding["fix"] for finding in problems.values()), "each has its cost and its fix")
if find_spec("torch") is None:
    check("environment.torch" in problems, "torch is missing, and that is said")
