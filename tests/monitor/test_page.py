"""The live page in a real browser."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from npstream.monitor.dashboard import HttpConfig
from tests.broker.properties import free_ports
from tests.monitor.browser import NAMES, Browser, find_chromium
from tests.monitor.builders import config, events, handled
from tests.stage.watched import Watched

pytestmark = pytest.mark.browser

_EVENTS = "+document.querySelector('#tiles dd small').textContent.replace(/[^0-9]/g, '')"
_AWAY = ("net::ERR_CONNECTION_", "net::ERR_EMPTY_RESPONSE")
_CONNECTION = "document.getElementById('connection').textContent"
_POINTS = "document.querySelector('article svg .line').getAttribute('d').split('L').length"


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
    """It loads without an error and without a foreign request, has a card for each partition, and follows events."""
    with Watched(tmp_path / "log", 3) as stage:
        for partition in range(3):
            stage.send(events(300, seed=partition), partition)
        stage.wait_for(handled(300, 300, 300))
        browser.open(stage.dashboard.url)
        browser.wait_for(f"{_EVENTS} === 900")
        cards = browser.value("[...document.querySelectorAll('article h2')].map(node => node.textContent)")
        states = browser.value("[...document.querySelectorAll('.state')].map(node => node.textContent)")
        rate = browser.value("document.querySelector('article .big').textContent")
        named = browser.value(
            "[...document.querySelectorAll('article svg')].every(svg => /rate over time/.test(svg.ariaLabel))"
        )
        points = browser.value(_POINTS)
        stage.send(events(200, seed=9), 1)
        browser.wait_for(f"{_EVENTS} === 1100")
        browser.wait_for(f"{_POINTS} > {points} + 1")
        browser.value("document.querySelector('article figure').scrollIntoView()")
        boundary = browser.wait_for("document.querySelector('article canvas').ariaLabel")
        url = stage.dashboard.url

    assert cards == ["Partition 0", "Partition 1", "Partition 2"]
    assert states == ["● live"] * 3
    assert "target" in rate
    assert "non-targets" in rate
    assert named
    assert boundary.startswith("Decision boundary after ")
    assert browser.console == []
    assert {request for request in browser.requests if not request.startswith((url, "data:"))} == set()


def test_the_page_survives_a_restart_of_the_worker(browser: Browser, tmp_path: Path) -> None:
    """While the worker is away the page says so; when it is back the page goes on, the gap in its line."""
    stage = Watched(tmp_path / "log", 2, http=HttpConfig("127.0.0.1", free_ports(1)[0]))
    stage.send(events(100))
    stage.start()
    stage.wait_for(handled(100, 0))
    url = stage.dashboard.url
    browser.open(url)
    browser.wait_for(f"{_EVENTS} === 100")
    stage.stop()
    away = browser.wait_for(f"{_CONNECTION}.includes('disconnected') && {_CONNECTION}")
    stage.send(events(50, seed=1))
    with stage:
        stage.wait_for(handled(150, 0))
        browser.wait_for(f"{_CONNECTION}.includes('● connected')")
        browser.wait_for(f"{_EVENTS} === 150")
        cards = browser.value("document.querySelectorAll('article').length")
        browser.wait_for("document.querySelectorAll('article:first-child svg:first-of-type .line').length === 2")

    assert away.startswith("▲ disconnected")
    assert cards == 2
    # Requests while nobody responded are the only complaints.
    assert [text for text in browser.console if not any(word in text for word in _AWAY)] == []


def test_after_a_restart_the_page_goes_on_with_the_recent_rates(browser: Browser, tmp_path: Path) -> None:
    """They are part of the state: beside them are those since the warm-up, and what both cover."""
    stage = Watched(tmp_path / "log")
    stage.send(events(100))
    stage.start()
    stage.wait_for(handled(100))
    stage.stop()
    with stage:
        stage.wait_for(handled(100))
        browser.open(stage.dashboard.url)
        browser.wait_for(f"{_EVENTS} === 100")
        rate = browser.value("document.querySelector('article .big').textContent")
        tiles = browser.value("document.getElementById('tiles').textContent")
        known = stage.status()["partitions"][0]["fpr"]

    assert 0 < known["window"]["of"] == known["lifetime"]["of"] < 100
    assert f"last {known['window']['of']} non-targets" in rate
    assert f"of {known['lifetime']['of']} non-targets" in rate
    assert f"of {known['lifetime']['of']} non-targets" in tiles
    assert "no labels" not in tiles


def test_a_boundary_that_is_not_drawn_says_why(browser: Browser, tmp_path: Path) -> None:
    """No empty box: two features and no label yet, a paused partition, more features than two."""
    box = "(box => [box.hidden, box.querySelector('canvas').hidden, box.querySelector('figcaption').textContent])"
    with Watched(tmp_path / "log", 2) as stage:
        stage.send([b"rubbish"] * 1200, 1)
        stage.wait_for(lambda status: [p["phase"] for p in status["partitions"]] == ["live", "paused"])
        browser.open(stage.dashboard.url)
        browser.wait_for("document.querySelectorAll('.state').length === 2")
        boxes = browser.value(f"[...document.querySelectorAll('article figure')].map({box})")
    with Watched(tmp_path / "three", using=config(d=3)) as stage:
        stage.wait_for(handled(0))
        browser.open(stage.dashboard.url)
        browser.wait_for("document.querySelectorAll('.state').length === 1")
        three = browser.value(f"{box}(document.querySelector('article figure'))")

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
        state = browser.value("document.querySelector('article[data-partition=\"0\"] .state').textContent")

    assert "Partition 0 is paused" in text
    assert "Look at the dead-letter topic" in text
    assert state == "■ paused"
    assert browser.console == []


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_a_phone_in_light_and_dark(browser: Browser, tmp_path: Path, width: int, scheme: str) -> None:
    """Nothing sticks out sideways, and text stands out from its background in both schemes."""
    with Watched(tmp_path / "log", 2) as stage:
        stage.send(events(300))
        stage.wait_for(handled(300, 0))
        browser.look(width, 800, scheme)
        browser.open(stage.dashboard.url)
        browser.wait_for(f"{_EVENTS} === 300")
        too_wide = browser.value("document.documentElement.scrollWidth > innerWidth")
        contrasts = browser.value(_CONTRASTS)

    assert not too_wide
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
  for (const node of document.querySelectorAll("h1,h2,h3,span,dt,dd,small,figcaption,.big")) {
    if (!node.textContent.trim() || !node.checkVisibility()) continue;
    const [a, b] = [numbers(getComputedStyle(node).color), behind(node)].map(light).sort((p, q) => q - p);
    found[node.textContent.slice(0, 30)] = (a + 0.05) / (b + 0.05);
  }
  return found;
})()
"""
