"""A chargeback desk: is the rate held, and known, when hardly anything but alarms is ever labelled?

The stream and its labels are in `npstream.study.chargebacks`, with the truth, so that
what a setting prints can be compared with what it did. The reference is the same model
under the same control, with the true label of every event at once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from npstream.arrays import Signs
from npstream.jobs import ResultRow
from npstream.model import Model, Params
from npstream.report.page import PageSection, Table
from npstream.study import chargebacks
from npstream.study.chargebacks import ALARM_RATE, EVENTS, SAMPLE, SEEDED, TAU, VERDICTS, Desk, DeskRun, Truth
from npstream.study.gates import Gate, all_within, at_least, at_most
from npstream.study.results import digest, number
from npstream.study.study import Report, Study, StudyRows

SHARES = (0.01, 0.002)
_SETTING = ("setting", "share", "seed", "events")
_ALARMS = ("first_day", "alarm_rate", "week_min", "week_max", "overdraft")
COLUMNS = (*_SETTING, *_ALARMS, "fpr_half", "tpr_third", "tpr_reference", "weeks", "covered")
_NEW = (ALARM_RATE, SAMPLE, SEEDED)


@dataclass(frozen=True, slots=True)
class DeskTask:
    """Every setting over one stream."""

    share: float
    seed: int
    events: int

    @property
    def key(self) -> str:
        settings = [[desk.name, desk.params.fingerprint()] for desk in chargebacks.desks(self.seed)]
        desk = [chargebacks.VERSION, self.share, self.seed, self.events]
        return digest({"study": "desk", "stream": desk, "settings": settings})

    def run(self) -> list[ResultRow]:
        truth, history = chargebacks.stream(self.share, self.seed, self.events)
        desks = chargebacks.desks(self.seed)
        reference = {params: _reference(params, truth) for params in dict.fromkeys(desk.params for desk in desks)}
        return [self._row(desk, truth, chargebacks.run(desk, truth, history), reference[desk.params]) for desk in desks]

    def _row(self, desk: Desk, truth: Truth, run: DeskRun, reference: float) -> ResultRow:
        n, alarm = self.events, run.decision > 0
        week = chargebacks.week_of(n)
        starts = range(0, n - week + 1, week)
        weekly = [float(alarm[start : start + week].mean()) for start in starts]
        true = [_alarmed(run.decision, truth.y < 0, slice(start, start + week)) for start in starts]
        # Where nothing is alarmed the rate is 0, which any interval from 0 on covers.
        alarming = [at for at, share in enumerate(weekly) if share > 0]
        printed = {at: run.interval(at, desk.review) for at in alarming}
        return {
            "setting": desk.name,
            "share": self.share,
            "seed": self.seed,
            "events": n,
            "first_day": int(alarm[: n // chargebacks.DAYS].sum()),
            "alarm_rate": float(alarm.mean()),
            "week_min": min(weekly),
            "week_max": max(weekly),
            "overdraft": _overdraft(alarm & (truth.y < 0)),
            "fpr_half": _alarmed(run.decision, truth.y < 0, _last(n, 2)),
            "tpr_third": _alarmed(run.decision, truth.y > 0, _last(n, 3)),
            "tpr_reference": reference,
            "weeks": len(alarming),
            "covered": sum(low <= true[at] <= high for at, (low, high) in printed.items()),
        }


def _reference(params: Params, truth: Truth) -> float:
    """Detection in the last third with every label at once."""
    decision = Model.create(params).stream(truth.x, truth.y).decision
    return _alarmed(decision, truth.y > 0, _last(len(decision), 3))


def _last(n: int, parts: int) -> slice:
    return slice(n - n // parts, n)


def _alarmed(decision: Signs, of: chargebacks.Bools, part: slice) -> float:
    """Share of alarms among these events of a part of the stream."""
    return float((decision[part][of[part]] > 0).mean())


def _overdraft(false_alarm: chargebacks.Bools) -> float:
    """The largest excess of false alarms over tau per observation, on any run of observations."""
    walk = np.concatenate([[0.0], np.cumsum(false_alarm - TAU)])
    return float((walk - np.minimum.accumulate(walk)).max())


def study(*, seeds: int = 20, quick: bool = False) -> Study:
    """Both shares of targets, each with so many seeds."""
    events, seeds = (EVENTS // 10, 1) if quick else (EVENTS, seeds)
    tasks = [DeskTask(share, seed, events) for share in SHARES for seed in range(seeds)]
    return Study(name="desk", file="desk", columns=COLUMNS, tasks=tasks, report=report)


def report(rows: StudyRows) -> Report:
    """A table for each share of targets, and the gates."""
    text = [
        "Alarms and a sample of 0.2% of the others are looked at after an hour, nine verdicts of ten are right; four "
        "of five missed targets come back after 30 days; nothing else is labelled. After a week what has no label is "
        "learned as a non-target. Means over seeds; the range of weeks is that of all seeds. Detection beside that of "
        "the same model with every true label at once. Covered: weeks with alarms in which the printed 95% interval of "
        "the FPR holds the true rate."
    ]
    shares = sorted({float(row["share"]) for row in rows}, reverse=True)
    tables = [_table([row for row in rows if float(row["share"]) == share], share) for share in shares]
    section = PageSection(heading="A chargeback desk", text=text, tables=tables)
    summary = {"rows": [{name: row[name] for name in COLUMNS} for row in rows]}
    gates = list(_gates(rows)) if all(int(row["events"]) == EVENTS for row in rows) else []
    return Report(sections=[section], summary=summary, gates=gates)


def _table(rows: StudyRows, share: float) -> Table:
    header = [
        "setting",
        "first day",
        "alarms/tau",
        "in a week",
        "FPR/tau, last half",
        "TPR, last third",
        "of reference",
    ]
    body = [_cells(name, _of(rows, name)) for name in dict.fromkeys(row["setting"] for row in rows)]
    return Table(header=[*header, "covered"], rows=body, caption=f"{share:.1%} targets, tau {TAU:g}")


def _cells(name: str, rows: StudyRows) -> list[str]:
    low, high = min(_column(rows, "week_min")), max(_column(rows, "week_max"))
    return [
        name,
        f"{np.mean(_column(rows, 'first_day')):.0f}",
        f"{np.mean(_column(rows, 'alarm_rate')) / TAU:.2f}",
        f"{low / TAU:.2f}..{high / TAU:.2f}",
        f"{np.mean(_column(rows, 'fpr_half')) / TAU:.2f}",
        f"{np.mean(_column(rows, 'tpr_third')):.3f}",
        f"{_detection(rows):.2f}",
        "-" if np.isnan(_covered(rows)) else f"{_covered(rows):.1%}",
    ]


def _of(rows: StudyRows, setting: str) -> StudyRows:
    return [row for row in rows if row["setting"] == setting]


def _column(rows: StudyRows, name: str) -> list[float]:
    return [number(row, name) for row in rows]


def _detection(rows: StudyRows) -> float:
    """Detection over that of the reference, both as means over seeds."""
    return float(np.mean(_column(rows, "tpr_third")) / np.mean(_column(rows, "tpr_reference")))


def _covered(rows: StudyRows) -> float:
    """Share of the weeks with alarms whose interval holds the true rate; NaN without such a week."""
    weeks = sum(_column(rows, "weeks"))
    return sum(_column(rows, "covered")) / weeks if weeks else float("nan")


def _gates(rows: StudyRows) -> Iterator[Gate]:
    alarms = _of(rows, ALARM_RATE)
    budget = chargebacks.desks(0)[0].params.budget
    yield at_least(f"{ALARM_RATE}: alarms on the first day, fewest", min(_column(alarms, "first_day")), 1)
    yield all_within(f"{ALARM_RATE}: alarms/tau over the stream", _per_tau(alarms, "alarm_rate"), 0.9, 1.02)
    weeks = [*_per_tau(alarms, "week_min"), *_per_tau(alarms, "week_max")]
    yield all_within(f"{ALARM_RATE}: alarms/tau in each week", weeks, 0.75, 1.15)
    yield at_most(f"{ALARM_RATE}: false alarms above tau n", max(_column(alarms, "overdraft")), 2 * budget + 1)
    for name in (SAMPLE, SEEDED):
        yield all_within(f"{name}: true FPR/tau, last half", _per_tau(_of(rows, name), "fpr_half"), 0.75, 1.1)
    for name in _NEW:
        for share in SHARES:
            mine = [row for row in _of(rows, name) if float(row["share"]) == share]
            yield at_least(f"{name}, {share:.1%} targets: detection of the reference's", _detection(mine), 0.85, 2)
        yield at_least(f"{name}: weeks whose interval covers the true FPR", _covered(_of(rows, name)), 0.9, 3)
    name = f"{VERDICTS}: weeks whose interval covers the true FPR, which it cannot know"
    yield at_most(name, _covered(_of(rows, VERDICTS)), 0.9)


def _per_tau(rows: StudyRows, name: str) -> Sequence[float]:
    return [value / TAU for value in _column(rows, name)]
