"""Exit codes of every command, in one place."""

from npstream.errors import NpstreamError, SettingsError, StateCorrupt, UsageError

OK, FAILED, USAGE, SETTINGS, FATAL, STATE, STUCK = range(7)
INTERRUPTED = 130

MEANINGS = {
    OK: "done",
    FAILED: "ran, and the result is no (a difference, a finding, a gate that does not hold)",
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
