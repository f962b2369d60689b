"""The live page in a real browser."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from npstream.codec.decoder import EventConfig
from npstream.model import Params
from npstream.model.params import Control
from npstream.monitor.dashboard import HttpConfig
from npstream.partition.config import ChallengerConfig
from tests.broker.properties import free_ports
from tests.monitor.browser import NAMES, Browser, find_chromium
from tests.monitor.builders import config, events, handled
from tests.stage.watched import Watched

pytestmark = pytest.mark.browser

_TILES = (
    "Object.fromEntries([...document.querySelectorAll('#tiles > div')].map(n => [n.firstChild.firstChild.data, n]))"
)
_EVENTS = f"+{_TILES}['Events/s'].querySelector('small').textContent.replace(/[^0-9]/g, '')"
_ROWS = "document.querySelectorAll('#partitions tbody.row')"
_STATES = "[...document.querySelectorAll('#partitions .state .pill')].map(node => node.textContent)"
_OPEN = "document.querySelector('#partitions .open').click()"
_DECISIONS = (
    "+document.querySelector('#time .chart:nth-of-type(4) svg').ariaLabel.replace(/,/g, '').match(/([0-9]+) in all/)[1]"
)
_LABELS = "[...document.querySelectorAll('.chart svg')].map(svg => svg.ariaLabel)"
_CELLS = "row => [...row.cells].map(cell => cell.textContent)"
_RATES = f"[...document.querySelectorAll('.rates')].map(table => [...table.rows].map({_CELLS}))"
_SPARKS = (
    "[...document.querySelectorAll('.spark path')]"
    ".map(node => [node, node.ownerSVGElement].map(each => each.getBoundingClientRect()))"
)
_AWAY = ("net::ERR_CONNECTION_", "net::ERR_EMPTY_RESPONSE")
_CONNECTION = "document.getElementById('connection').textContent"


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    """A Chromium of the test's own; without one the test is skipped, in CI it fails."""
    program = find_chromium()
    if program is None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI needs a browser: install one of {', '.join(NAMES)}", pytrace=False)
        pytest.skip(f"no browser here: install one of {', '.join(NAMES)}")
    with Browser(program, tmp_path / "browser") as browser:
        yield browser


def test_the_page_shows_the_worker_and_moves_with_it(browser: Browser, tmp_path: Path) -> None:
    """It loads without an error and without a foreign request, has a row for each partition, and follows events."""
    with Watched(tmp_path / "log", 3) as stage:
        for partition in range(3):
            stage.send(events(300, seed=partition), partition)
        stage.wait_for(handled(300, 300, 300))
        browser.open(stage.dashboard.url)
        browser.wait_for(f"{_EVENTS} === 900")
        rows = browser.value(f"[...{_ROWS}].map(node => node.dataset.partition)")
        states = browser.value(_STATES)
        rate = browser.value(f"{_TILES}['False-positive rate'].textContent")
        browser.wait_for(f"{_DECISIONS} === 900")
        stage.send(events(200, seed=9), 1)
        browser.wait_for(f"{_EVENTS} === 1100")
        browser.wait_for(f"{_DECISIONS} === 1100")
        browser.value(_OPEN)
        browser.wait_for(f"{_LABELS}.length === 8 && {_LABELS}.every(label => label)")
        named = browser.value(_LABELS)
        browser.value("document.querySelector('figure').scrollIntoView()")
        boundary = browser.wait_for("document.querySelector('canvas').ariaLabel")
        url = stage.dashboard.url

    assert rows == ["0", "1", "2"]
    assert states == ["● live"] * 3
    assert "target 10.0 %" in rate
    assert "non-targets" in rate
    assert [label for label in named if "over time" not in label or "over the last 24 hours" not in label] == []
    assert boundary.startswith("Decision boundary after ")
    assert browser.console == []
    assert {request for request in browser.requests if not request.startswith((url, "data:"))} == set()


def test_the_page_survives_a_restart_of_the_worker(browser: Browser, tmp_path: Path) -> None:
    """While the worker is away the page says so; when it is back the page goes on, with what was before."""
    stage = Watched(tmp_path / "log", 2, http=HttpConfig("127.0.0.1", free_ports(1)[0]))
    stage.send(events(100))
    stage.start()
    stage.wait_for(handled(100, 0))
    browser.open(stage.dashboard.url)
    browser.wait_for(f"{_EVENTS} === 100")
    stage.stop()
    away = browser.wait_for(f"{_CONNECTION}.includes('disconnected') && {_CONNECTION}")
    stage.send(events(50, seed=1))
    with stage:
        stage.wait_for(handled(150, 0))
        browser.wait_for(f"{_CONNECTION}.includes('● connected')")
        browser.wait_for(f"{_EVENTS} === 150")
        browser.wait_for(f"{_DECISIONS} === 150")
        rows = browser.value(f"{_ROWS}.length")

    assert away.startswith("▲ disconnected")
    assert rows == 2
    # Requests while nobody responded are the only complaints.
    assert [text for text in browser.console if not any(word in text for word in _AWAY)] == []


def test_after_a_restart_a_browser_that_comes_later_sees_the_day_before(browser: Browser, tmp_path: Path) -> None:
    """The past is the worker's: hours of events that another process decided, and what the rates cover."""
    stage = Watched(tmp_path / "log")
    now_ms = int(time.time() * 1000)
    for hours in range(40, 0, -1):
        stage.send(events(10, seed=hours), timestamp_ms=now_ms - hours * 3_600_000)
    stage.start()
    stage.wait_for(handled(400))
    stage.stop()
    spans = {}
    with stage:
        stage.wait_for(handled(400))
        browser.open(stage.dashboard.url)
        browser.wait_for(f"{_EVENTS} === 400")
        for span, count in {"day": 240, "month": 400, "hour": 10}.items():
            browser.value(f"document.querySelector('[data-span={span}]').click()")
            spans[span] = browser.wait_for(f"{_DECISIONS} === {count}")
        rate = browser.value(f"{_TILES}['False-positive rate'].textContent")
        known = stage.status()["partitions"][0]["fpr"]
        note = browser.value("document.getElementById('time-note').textContent")

    assert spans == {"day": True, "month": True, "hour": True}
    assert 0 < known["window"]["of"] == known["lifetime"]["of"]
    assert f"last {known['window']['of']} non-targets" in rate
    assert f"of {known['lifetime']['of']} since warm-up" in rate
    assert "the newest event is 60 min old" in note


def test_warm_up_is_shown_as_progress(browser: Browser, tmp_path: Path) -> None:
    """How much of it is done, in place of a rate; and no word of alarms that were withheld."""
    with Watched(tmp_path / "log") as stage:
        stage.send(events(8))
        stage.wait_for(handled(8))
        browser.open(stage.dashboard.url)
        tile = browser.wait_for(f"{_TILES}['False-positive rate'].textContent")
        done = browser.value(f"{_TILES}['False-positive rate'].querySelector('.progress i').style.width")
        states = browser.value(_STATES)
        text = browser.value("document.body.innerText")
        warmup = stage.status()["partitions"][0]["warmup"]

    assert 0 < warmup["seen"] < warmup["of"] == 10
    assert f"{warmup['seen']} of 10 labelled non-targets before the first alarm" in tile
    assert done == f"{10 * warmup['seen']}%"
    assert states == ["◔ warming up"]
    assert "withheld 0" not in text.lower()


@pytest.mark.parametrize("control", ["fpr", "alarm_rate"])
def test_tiers_and_challenger_are_held_against_what_the_control_holds(
    browser: Browser, tmp_path: Path, control: Control
) -> None:
    """Once on top for all partitions and once in each, with its rate, target and detection."""
    tiers, rival = (("block", 0.05), ("review", 0.2)), Params(d=2, D=6, tau=0.3, control="alarm_rate")
    using = config(
        params=Params(d=2, D=8, tiers=tiers, control=control),
        challenger=ChallengerConfig(params=rival, events=EventConfig(d=2)),
    )
    with Watched(tmp_path / "log", 2, using=using) as stage:
        for partition in range(2):
            stage.send(events(400, seed=partition), partition)
        stage.wait_for(handled(400, 400))
        browser.open(stage.dashboard.url)
        browser.wait_for(f"{_EVENTS} === 800")
        browser.value(_OPEN)
        tables = browser.wait_for(f"{_RATES}.length === 4 && {_RATES}")
        above, within = tables[:2], tables[2:]
        known = stage.status()["partitions"]

    held = "alarm_rate" if control == "alarm_rate" else "fpr"
    rows = {row[0]: row for table in within for row in table[1:]}
    assert [table[0][2] for table in (*above, *within)] == ["Alarm rate" if control == "alarm_rate" else "FPR"] * 4
    assert rows.keys() == {row[0] for table in above for row in table[1:]}
    named = {tier["name"]: (tier, held) for tier in known[0]["tiers"]}
    named["Champion"] = known[0], held
    named["Challenger" if control == "alarm_rate" else "Challenger, by Alarm rate"] = (
        known[0]["challenger"],
        "alarm_rate",
    )
    assert rows.keys() == named.keys()
    for name, (shown, rate) in named.items():
        now, since, detected = (
            shown[key][span]["value"] for key, span in ((rate, "window"), (rate, "lifetime"), ("tpr", "window"))
        )
        percents = [float(text.split(" ")[0]) / 100 for text in (*rows[name][1:3], *rows[name][4:6])]
        assert percents == pytest.approx([shown["tau"], now, since, detected], abs=0.0006)


def test_a_boundary_that_is_not_drawn_says_why(browser: Browser, tmp_path: Path) -> None:
    """No empty box: two features and no label yet, a paused partition, more features than two."""
    box = "(box => [box.hidden, box.querySelector('canvas').hidden, box.querySelector('figcaption').textContent])"
    opened = "document.querySelectorAll('#partitions .open[aria-expanded=false]').forEach(node => node.click())"
    with Watched(tmp_path / "log", 2) as stage:
        stage.send([b"rubbish"] * 1200, 1)
        stage.wait_for(lambda status: [p["phase"] for p in status["partitions"]] == ["live", "paused"])
        browser.open(stage.dashboard.url)
        browser.wait_for(f"{_ROWS}.length === 2")
        browser.value(opened)
        boxes = browser.value(f"[...document.querySelectorAll('figure')].map({box})")
    with Watched(tmp_path / "three", using=config(d=3)) as stage:
        stage.wait_for(handled(0))
        browser.open(stage.dashboard.url)
        browser.wait_for(f"{_ROWS}.length === 1")
        three = browser.value(f"{box}(document.querySelector('figure'))")

    assert boxes == [
        [False, True, "Not drawn yet: the model has learned from no label."],
        [False, True, "Not drawn: the partition is paused."],
    ]
    assert three[0] is True


def test_a_paused_partition_is_shown_with_its_reason(browser: Browser, tmp_path: Path) -> None:
    """Rubbish beyond the cap pauses a partition; the page says which and what to do, in words."""
    with Watched(tmp_path / "log", 2) as stage:
        stage.send(events(10), 1)
        stage.send([b"rubbish"] * 1200)
        stage.wait_for(lambda status: [p["phase"] for p in status["partitions"]] == ["paused", "live"])
        browser.open(stage.dashboard.url)
        text = browser.wait_for("(box => !box.hidden && box.textContent)(document.getElementById('trouble'))")
        state = browser.value("document.querySelector('#partitions .state .pill').textContent")

    assert "Partition 0 is paused" in text
    assert "Look at the dead-letter topic" in text
    assert state == "■ paused"
    assert browser.console == []


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_a_phone_in_light_and_dark(browser: Browser, tmp_path: Path, width: int, scheme: str) -> None:
    """Nothing sticks out sideways, no line of its frame, and text stands out from its background in both schemes."""
    with Watched(tmp_path / "log", 2) as stage:
        stage.send(events(300))
        stage.wait_for(handled(300, 0))
        browser.look(width, 800, scheme)
        browser.open(stage.dashboard.url)
        browser.wait_for(f"{_EVENTS} === 300")
        browser.value(_OPEN)
        too_wide = browser.value("document.documentElement.scrollWidth > innerWidth")
        beyond = browser.wait_for(f"({_SPARKS}).length && ({_SPARKS}).map(([line, frame]) => line.right - frame.right)")
        contrasts = browser.value(_CONTRASTS)

    assert not too_wide
    assert max(beyond) <= 0
    assert len(contrasts) > 10
    # WCAG AA asks for 4.5 for text of normal size.
    assert {text: ratio for text, ratio in contrasts.items() if ratio < 4.5} == {}


_CONTRASTS = """
(() => {
  const numbers = text => text.match(/[0-9.]+/g).map(Number);
  const linear = v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = rgb => rgb.slice(0, 3).reduce((sum, v, i) => sum + linear(v / 255) * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = node => {
    const colour = numbers(getComputedStyle(node).backgroundColor);
    return colour.length === 3 || colour[3] > 0 ? colour : behind(node.parentElement);
  };
  const found = {};
  for (const node of document.querySelectorAll("h1,h2,h3,p,b,span,button,dt,dd,th,td,small,figcaption,.value")) {
    if (!node.textContent.trim() || !node.checkVisibility()) continue;
    const [a, b] = [numbers(getComputedStyle(node).color), behind(node)].map(light).sort((p, q) => q - p);
    found[node.textContent.slice(0, 30)] = (a + 0.05) / (b + 0.05);
  }
  return found;
})()
"""
