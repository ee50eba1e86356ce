"""Denials: operations that a sandbox refused, read from what commands and tools printed.

`find_denials` (in `detector`) is the entry point:

1. `lines` finds the few lines of an output that may report a denial.
2. `file_messages` and `network_messages` read them: operation, reason, path or host. `startup` recognizes a
   sandbox that could not be started.
3. `sources` decides which command of the script can have printed them, by what `programs` knows of it; text
   that commands show from elsewhere (documents, logs, test runs) is no message.
4. `file_denials` and `network_denials` keep what the policy in force explains, `merging` joins what belongs
   together.
"""

from agentdash.engine.detect.denials.detector import MAX_DENIALS, find_denials
from agentdash.engine.detect.denials.lines import MAX_QUOTE_CHARACTERS
from agentdash.model.denials import Certainty, Denial, Operation, What

__all__ = ["MAX_DENIALS", "MAX_QUOTE_CHARACTERS", "Certainty", "Denial", "Operation", "What", "find_denials"]
