"""Tiers in a partition: named in decisions, the same in any batching, carried through snapshots and changes."""

import pytest

from npstream.codec.decisions import decode_decision
from npstream.codec.snapshot import decode_snapshot, encode_snapshot
from npstream.errors import SettingsError
from npstream.model import Params
from npstream.partition import PartitionConfig, PartitionProcessor
from npstream.records import Channel, Output
from tests.partition.builders import D, config, mixed, processor, split

TIERS = (("block", 0.03), ("hold", 0.1), ("review", 0.2))


def tiered(tiers: tuple[tuple[str, float], ...] = TIERS, **params: object) -> PartitionConfig:
    """The small model of the builders with tiers."""
    return config(params=Params.from_dict({"d": D, "D": 8, "budget": 5.0, "tiers": tiers, **params}))


def taken(machine: PartitionProcessor, size: int = 10_000) -> list[Output]:
    """All outputs of the mixed stream, in batches."""
    return [output for part in split(mixed(3_000), size) for output in machine.process(part).outputs]


@pytest.mark.parametrize("control", ["fpr", "alarm_rate"])
def test_an_alarm_names_the_strictest_tier_it_reached(control: str) -> None:
    """Every alarm has a tier, nothing else has one, and the counts are those of the model."""
    machine = processor(tiered(control=control))
    found = [decode_decision(out.value) for out in taken(machine) if out.channel == Channel.DECISIONS]
    named = [each.tier for each in found if each.decision == 1 and each.reason != "invalid"]
    alarms = {tier.name: tier.alarms for tier in machine.model.tiers}

    assert {each.tier for each in found if each.decision == -1} == {None}
    assert alarms["block"] == named.count("block") > 0
    assert alarms["hold"] == alarms["block"] + named.count("hold") > alarms["block"]
    assert alarms["review"] == len(named) == machine.tally.alarms > alarms["hold"]


def test_batches_and_a_restart_leave_no_trace() -> None:
    """Any split, and a snapshot in between, gives the same bytes: depths of waiting alarms are part of it."""
    whole, cut = processor(tiered()), processor(tiered())
    expected = taken(whole)
    found: list[Output] = []
    for at, part in enumerate(split(mixed(3_000), 37)):
        if at % 20 == 7:
            cut = PartitionProcessor.from_snapshot(decode_snapshot(encode_snapshot(cut.snapshot())))
        found += cut.process(part).outputs

    assert found == expected
    assert encode_snapshot(cut.snapshot()) == encode_snapshot(whole.snapshot())


@pytest.mark.parametrize("control", ["fpr", "alarm_rate"])
def test_every_tier_has_rates_of_its_own_after_a_restart_too(control: str) -> None:
    """Its alarms among the same events as those of the widest, whose rates are the partition's; part of a snapshot."""
    machine = processor(tiered(control=control))
    taken(machine)
    rates, tiers = machine.rates(), machine.model.tiers
    strict, widest = rates.tiers[0], rates.tiers[-1]

    assert [each.name for each in rates.tiers] == ["block", "hold", "review"]
    assert [each.alarm_rate.lifetime.hits for each in rates.tiers] == [tier.alarms for tier in tiers]
    assert [each.fpr.lifetime.hits for each in rates.tiers] == [tier.false_alarms for tier in tiers]
    assert [each.tpr.lifetime.hits for each in rates.tiers] == [tier.detections for tier in tiers]
    assert (widest.alarm_rate, widest.fpr, widest.tpr) == rates[:3]
    assert strict.fpr.lifetime.trials == widest.fpr.lifetime.trials < tiers[0].negatives
    assert strict.fpr.window.trials > widest.fpr.window.trials
    again = PartitionProcessor.from_snapshot(decode_snapshot(encode_snapshot(machine.snapshot())))
    assert again.rates() == rates


def test_rates_change_at_a_checkpoint_and_names_do_not() -> None:
    """A change of rates keeps every threshold; other names are refused with the reason."""
    machine = processor(tiered())
    taken(machine)
    before = [tier.threshold for tier in machine.model.tiers]
    machine.reconfigure(tiered((("block", 0.02), ("hold", 0.05), ("review", 0.3))))

    assert [(tier.rate, tier.threshold) for tier in machine.model.tiers] == list(
        zip((0.02, 0.05, 0.3), before, strict=True)
    )
    for others in (TIERS[1:], (("stop", 0.03), *TIERS[1:])):
        with pytest.raises(SettingsError, match="tiers"):
            machine.reconfigure(tiered(others))
