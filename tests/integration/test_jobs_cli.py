"""`baton job`, `baton queue` and `baton dead` against a served API on a real Postgres."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from sidecar.cli import main
from tests.integration.jobs_api_lab import Api, Spec, serve


@pytest.fixture
async def api(database_url: str, tmp_path: Path) -> AsyncIterator[Api]:
    async with serve(database_url, tmp_path) as api:
        yield api


async def baton(api: Api, *arguments: str) -> tuple[int, str]:
    """The exit code, and what was printed."""
    printed = io.StringIO()

    def run() -> int:
        with redirect_stdout(printed), redirect_stderr(printed):
            return main([*arguments, "--address", api.address])

    return await asyncio.to_thread(run), printed.getvalue().strip()


async def test_a_job_from_submit_to_its_end(api: Api) -> None:
    code, job_id = await baton(
        api, "job", "submit", "mail", "--payload", '{"to": "a"}', "--queue", "slow",
        "--priority", "high", "--label", "tenant=a", "--delay", "1h", "--unique", "u",
        "--attempts", "5", "--timeout", "30s", "--key", "k", "--batch", "b",
    )  # fmt: skip
    assert (code, job_id.isdecimal()) == (0, True)
    job = await api.get(int(job_id))
    assert (job.queue, dict(job.labels), job.key, job.batch) == ("slow", {"tenant": "a"}, "k", "b")
    again = await baton(api, "job", "submit", "mail", "--unique", "u")
    assert again == (0, f"{job_id}\nbaton: this job is there already")
    code, text = await baton(api, "job", "list", "--queue", "slow", "--state", "queued")
    assert job_id in text
    assert "high" in text
    assert (await baton(api, "job", "list", "--outcome", "failed")) == (0, "no jobs")
    code, text = await baton(api, "job", "get", job_id)
    assert 'payload: {"to": "a"}' in text
    assert (await baton(api, "job", "retry", job_id))[0] == 1
    await api.wait_for_retry(int(job_id))
    code, text = await baton(api, "job", "retry", job_id)
    assert (code, "boom" in text) == (0, True)
    done = await baton(api, "job", "cancel", job_id, "--note", "not needed")
    assert done == (0, "cancelled: 1, asked to stop: 0")
    code, text = await baton(api, "job", "watch", job_id)
    assert "skipped (operator)" in text
    code, text = await baton(api, "job", "get", job_id, "--wait", "1s", "-o", "json")
    assert json.loads(text)["reason"] == "SKIP_REASON_OPERATOR"


async def test_what_is_refused_is_one_line(api: Api) -> None:
    code, text = await baton(api, "job", "cancel")
    assert (code, len(text.splitlines())) == (1, 1)
    assert "restricts nothing" in text
    code, text = await baton(api, "job", "get", "1")
    assert (code, "there is no job 1" in text) == (1, True)


async def test_queues(api: Api) -> None:
    assert await baton(api, "queue", "list") == (0, "no queues")
    await api.submit(Spec(name="m", queue="mail"))
    assert await baton(api, "queue", "pause", "mail", "--note", "full") == (0, "mail is paused")
    _, text = await baton(api, "queue", "list")
    assert "paused: full" in text
    _, text = await baton(api, "queue", "list", "-o", "json")
    assert json.loads(text)[0]["ready"] == "1"
    assert await baton(api, "queue", "resume", "mail") == (0, "mail is resumed")


async def test_dead_letters(api: Api) -> None:
    assert await baton(api, "dead", "list") == (0, "no dead letters")
    ids = await api.submit(Spec(name="a", payload=b"\x1b[2J\xff"), Spec(name="b"), Spec(name="b"))
    for job_id in ids:
        await api.bury(job_id, "no \x1b[31mroute")
    _, text = await baton(api, "dead", "list", "--name", "a")
    assert (len(text.splitlines()), "\x1b" in text) == (2, False)
    _, text = await baton(api, "dead", "show", str(ids[0]))
    assert "error: no \\x1b[31mroute" in text
    assert "\x1b" not in text
    dry = await baton(api, "dead", "replay", "--error", "route", "--dry-run")
    assert dry == (0, "would be replayed: 3")
    assert await baton(api, "dead", "replay", str(ids[0])) == (0, "replayed: 1")
    _, text = await baton(api, "dead", "discard", "--name", "b", "-o", "json")
    assert json.loads(text) == {"discarded": 2, "dry_run": False}
    assert await baton(api, "dead", "list") == (0, "no dead letters")
