"""Exit codes of every command, in one place."""

from npstream.errors import NpstreamError, SettingsError, StateCorrupt, UsageError

OK = 0
FAILED = 1
"""The command ran and the answer is no: a difference, a finding, a gate that does not hold."""
USAGE = 2
"""The command line, or a file it names, cannot be used."""
SETTINGS = 3
"""The settings cannot be used; every problem is printed."""
FATAL = 4
"""Brokers out of reach, access refused, a topic missing, or recovery took too long."""
STATE = 5
"""Stored state cannot be trusted; the message names the key and the way out."""
STUCK = 6
"""The watchdog ended a worker whose loop hung."""
INTERRUPTED = 130
"""Ctrl-C, where it does not mean a polite end (`run` ends with 0)."""

MEANINGS = {
    OK: "done",
    FAILED: "ran, and the answer is no (a difference, a finding, a gate that does not hold)",
    USAGE: "the command line, or a file it names, cannot be used",
    SETTINGS: "the settings cannot be used; every problem is printed",
    FATAL: "brokers out of reach, access refused, a topic missing, or recovery took too long",
    STATE: "stored state cannot be trusted; the message names the key and the way out",
    STUCK: "the worker's loop hung and its watchdog ended it; every thread's stack is on standard error",
    INTERRUPTED: "stopped by Ctrl-C (`npstream run` finishes its batch and ends with 0)",
}


def code_of(error: NpstreamError) -> int:
    """The exit code an error ends a command with."""
    if isinstance(error, SettingsError):
        return SETTINGS
    if isinstance(error, UsageError):
        return USAGE
    if isinstance(error, StateCorrupt):
        return STATE
    return FATAL
