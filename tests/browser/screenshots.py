"""Pictures of every page in light, dark and phone width: `make screenshots`."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from devtools.servers import postgres_url
from tests.browser.chromium import PAGES, browser, missing
from tests.browser.scene import CONFIG, call, prepare
from tests.lab.cluster import Cluster
from tests.lab.replica import Replica, Setup

_LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1360, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1360, "height": 900}},
    "phone": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}},
}


def main(target: Path) -> int:
    if problem := missing():
        print(problem, file=sys.stderr)
        return 1
    target.mkdir(parents=True, exist_ok=True)
    with postgres_url("") as url, tempfile.TemporaryDirectory(prefix="baton-pictures-") as folder:
        setup = Setup(url, profile="fast", groups=("default", "reports"), config=CONFIG, web=True)
        with Cluster(Path(folder) / "cluster", 3, setup) as cluster:
            leader = prepare(cluster, url)
            cluster.takeover(lambda replica: replica.kill())  # something to see
            shown = next(one for one in cluster.others(leader))
            time.sleep(20)
            _take(shown, target)
    return 0


def _take(replica: Replica, target: Path) -> None:
    runs = call(replica, "Runs/List", name="checkout-settlement")["runs"]
    narrow = {"/": "/?window=3600s", "/leadership": "/leadership?span=900"}
    paths = [*(narrow.get(path, path) for path in PAGES), f"/runs/{runs[-1]['runId']}"]
    with browser() as running:
        for look, options in _LOOKS.items():
            context = running.new_context(**options)
            page = context.new_page()
            for path in paths:
                page.goto(f"http://{replica.web_address}{path}")
                page.wait_for_selector("main table, main .lanes")
                page.wait_for_timeout(1500)
                page_name = path.partition("?")[0].strip("/") or "overview"
                name = "run" if path.startswith("/runs/") else page_name
                page.screenshot(path=target / f"{name}-{look}.png", full_page=True)
            context.close()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "dist/screenshots")))
