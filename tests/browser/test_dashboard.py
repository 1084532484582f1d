"""The dashboard in a real browser, on a running cluster."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.chromium import PAGES
from tests.browser.scene import CONFIG, HOSTILE, call, prepare
from tests.lab.replica import Replica

if TYPE_CHECKING:
    from tests.conftest import NewCluster

_SECONDS = 60_000
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


class Watched:
    """A page whose console errors, failed scripts and policy violations are collected."""

    def __init__(self, page: Any, address: str) -> None:
        self.page, self.address = page, address
        self.problems: list[str] = []
        self.bytes = 0
        page.set_default_timeout(_SECONDS)
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("response", self._received)

    def _console(self, message: Any) -> None:
        # An error status of the API is an answer, not a fault of the page.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.problems.append(message.text)

    def _received(self, response: Any) -> None:
        self.bytes += int(response.headers.get("content-length", "0"))

    def open(self, path: str) -> None:
        self.page.goto(f"http://{self.address}{path}")
        self.page.wait_for_selector("main h1")


@pytest.fixture
def visit(chromium: Any) -> Iterator[Callable[..., Watched]]:
    contexts = []

    def new(replica: Replica, **options: Any) -> Watched:
        contexts.append(chromium.new_context(**options))
        return Watched(contexts[-1].new_page(), replica.web_address)

    yield new
    for context in contexts:
        context.close()


def test_every_page_shows_a_cluster_and_its_actions_work(
    new_cluster: NewCluster, database_url: str, visit: Callable[..., Watched]
) -> None:
    """G12: hostile names and payloads are text; the console and the policy have no complaint."""
    cluster = new_cluster(
        2, web=True, profile="steady", groups=("default", "reports"), config=CONFIG
    )
    leader = prepare(cluster, database_url)
    seen = visit(leader)
    for path in PAGES:
        seen.open(path)
        seen.page.wait_for_selector("table, .lanes, .empty")
        seen.page.wait_for_selector(".waiting", state="detached")
        assert seen.page.evaluate("window.hacked") is None, path
        fits = "document.documentElement.scrollWidth <= document.documentElement.clientWidth + 1"
        assert seen.page.evaluate(fits), f"{path} is wider than the window"
    _hostile_run_is_text(seen)
    _filters_live_in_the_address(seen)
    _charts_have_tables(seen)
    _values_are_hidden(seen)
    _actions(seen, leader)
    _phone(visit(leader, viewport={"width": 390, "height": 844}))
    assert seen.problems == []


def _hostile_run_is_text(seen: Watched) -> None:
    seen.open("/runs?outcome=OUTCOME_FAILED&kind=RUN_KIND_TRIGGER")
    seen.page.click("tbody tr:first-child a")
    seen.page.wait_for_selector("pre.error")
    text = seen.page.inner_text("main")
    assert "<script>window.hacked=1</script>" in text
    assert "\u202e" not in text
    assert "\\u202e" in text
    assert seen.page.evaluate("window.hacked") is None
    assert seen.page.query_selector("main script") is None


def _filters_live_in_the_address(seen: Watched) -> None:
    seen.open("/runs?name=stock-sync")
    seen.page.select_option("label:has-text('Outcome') select", "OUTCOME_FAILED")
    seen.page.wait_for_url(re.compile(r"outcome=OUTCOME_FAILED"))
    seen.page.wait_for_selector("tbody .badge.bad")
    assert "name=stock-sync" in seen.page.url
    names = seen.page.eval_on_selector_all(
        "tbody td:first-child", "all => all.map(e => e.innerText)"
    )
    assert set(names) == {"stock-sync"}
    seen.page.go_back()
    seen.page.wait_for_url(lambda url: "outcome" not in url)


def _charts_have_tables(seen: Watched) -> None:
    for path in ("/", "/leadership", "/schedules"):
        seen.open(path)
        seen.page.wait_for_selector(".chart button")
        seen.page.click(".chart button")
        seen.page.wait_for_selector(".chart table")


def _values_are_hidden(seen: Watched) -> None:
    seen.open("/state?prefix=order/0001")
    seen.page.wait_for_selector("tbody tr")
    assert "total" not in seen.page.content()
    seen.page.click("text=Show")
    seen.page.wait_for_selector("pre:has-text('total')")


def _confirmed(seen: Watched, button: str) -> str:
    seen.page.click(f"dialog[open] button:has-text('{button}') >> nth=-1")
    seen.page.wait_for_selector(".announcement")
    text = str(seen.page.inner_text(".announcement span"))
    seen.page.click(".announcement button")
    return text


def _actions(seen: Watched, leader: Replica) -> None:
    seen.open("/schedules?prefix=invoice-export")
    seen.page.click("td button:has-text('Pause')")
    seen.page.fill("dialog[open] input >> nth=0", "a test")
    seen.page.fill("dialog[open] input >> nth=1", "Ada")
    assert _confirmed(seen, "Pause") == "invoice-export is paused."
    schedule = call(leader, "Schedules/Get", name="invoice-export")["schedule"]
    assert (schedule["paused"], schedule["pauseNote"]) == (True, "a test")
    seen.page.click("td button:has-text('Trigger')")
    assert _confirmed(seen, "Trigger").startswith("Queued as run ")
    seen.page.click("td button:has-text('Resume')")
    assert _confirmed(seen, "Resume") == "invoice-export is resumed."
    seen.open("/runs?name=stock-sync&outcome=OUTCOME_FAILED")
    seen.page.click("tbody tr:first-child a")
    seen.page.click(".page-title button:has-text('Retry')")
    assert _confirmed(seen, "Retry") == "The run is queued again."
    done = [line for line in leader.log() if line["event"] == "dashboard_action"]
    assert [(one["method"], one["user"]) for one in done] == [
        ("baton.v1.Schedules/Pause", "Ada"),
        ("baton.v1.Schedules/Trigger", "Ada"),
        ("baton.v1.Schedules/Resume", "Ada"),
        ("baton.v1.Runs/Retry", "Ada"),
    ]


def _phone(seen: Watched) -> None:
    for path in PAGES:
        seen.open(path)
        fits = "document.documentElement.scrollWidth <= document.documentElement.clientWidth + 1"
        assert seen.page.evaluate(fits), f"{path} is wider than a phone"
    assert seen.problems == []


def test_it_follows_a_failover_and_an_outage(
    new_cluster: NewCluster, visit: Callable[..., Watched]
) -> None:
    """It answers while Postgres is away and says so; a lost term is shown as lost."""
    config = {"web": {"dashboard": "read"}}
    cluster = new_cluster(2, web=True, profile="steady", config=config)
    old = cluster.wait_until_known()
    (standby,) = cluster.others(old)
    cluster.takeover(lambda replica: replica.kill())
    seen = visit(standby)
    seen.open("/leadership")
    seen.page.wait_for_selector("text=lost: crashed, frozen or cut off")
    assert seen.page.query_selector("button:has-text('Hand over')") is None
    assert seen.page.query_selector("text=read only")
    assert standby.pool_wire
    standby.pool_wire.silence()
    seen.page.wait_for_selector("text=Postgres is slow or away.")
    seen.page.wait_for_selector("text=What you see is from")
    seen.open("/")  # it also loads while Postgres is away
    seen.page.wait_for_selector("text=Postgres is slow or away.")
    standby.pool_wire.heal()
    seen.page.wait_for_selector(".bars")
    seen.page.wait_for_selector(".banner", state="detached")
    assert seen.problems == []


def test_the_token_is_asked_for_once_and_kept_out_of_the_address(
    new_cluster: NewCluster, tmp_path: Path, visit: Callable[..., Watched]
) -> None:
    """G12: and the first page has less than 200 KB."""
    (tmp_path / "token").write_text("correct-horse")
    config = {"web": {"dashboard": "read"}, "api": {"token_file": str(tmp_path / "token")}}
    cluster = new_cluster(1, web=True, profile="steady", config=config)
    replica = cluster[0]
    cluster_page = visit(replica)
    page = cluster_page.page
    _wait_for_web(page, replica)
    cluster_page.open("/")
    page.fill("input[type=password]", "wrong")
    page.click("button[type=submit]")
    page.wait_for_selector("[role=alert]")
    page.fill("input[type=password]", "correct-horse")
    page.click("button[type=submit]")
    page.wait_for_selector(".tiles")
    assert "correct-horse" not in page.url
    page.reload()
    page.wait_for_selector(".tiles")
    assert cluster_page.bytes < 200_000
    assert not any("correct-horse" in str(line) for line in replica.log())
    assert cluster_page.problems == []


def _wait_for_web(page: Any, replica: Replica) -> None:
    from tests.lab.processes import wait_until

    wait_until(
        lambda: any(line["event"] == "web_listening" for line in replica.log()),
        60,
        lambda: "the web",
    )


def test_hostile_text_is_hostile() -> None:
    assert "<script>" in HOSTILE
    assert "\u202e" in HOSTILE
