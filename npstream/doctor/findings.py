"""Findings of a doctor: what is wrong, where, and what to do about it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Level = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found. An error stops or will stop work; a warning will hurt one day; a note needs nothing done."""

    level: Level
    subject: str
    problem: str
    fix: str = ""


def counts_against(findings: Sequence[Finding]) -> bool:
    """Whether anything must be done."""
    return any(finding.level != "note" for finding in findings)


def findings_json(findings: Sequence[Finding], looked_at: Sequence[str]) -> dict[str, Any]:
    """Everything, for scripts."""
    return {
        "healthy": not counts_against(findings),
        "looked_at": list(looked_at),
        "findings": [asdict(finding) for finding in findings],
    }


def findings_text(findings: Sequence[Finding], looked_at: Sequence[str]) -> str:
    """Worst first, each with its fix; then the verdict."""
    order = ("error", "warning", "note")
    lines = []
    for finding in sorted(findings, key=lambda item: order.index(item.level)):
        lines.append(f"{finding.level:<8} {finding.subject}: {finding.problem}")
        if finding.fix:
            lines.append(f"         fix: {finding.fix}")
    errors, warnings = (sum(finding.level == level for finding in findings) for level in ("error", "warning"))
    verdict = f"{errors} errors, {warnings} warnings" if errors or warnings else "no findings"
    return "\n".join([*lines, f"{verdict}; looked at {', '.join(looked_at)}"])
