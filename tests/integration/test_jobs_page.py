"""What docs/jobs.md shows works."""

import shlex
from pathlib import Path

from sidecar.config import load
from tests.integration.jobs_api_lab import serve
from tests.integration.test_jobs_cli import baton
from tests.lab.pages import blocks

PAGE = "docs/jobs.md"


async def test_the_commands_of_the_page_work(database_url: str, tmp_path: Path) -> None:
    lines = [
        line for block in blocks(PAGE) if block.language == "sh" for line in block.text.splitlines()
    ]
    assert len(lines) > 10
    async with serve(database_url, tmp_path) as api:
        (job_id,) = await api.submit()
        for line in lines:
            program, *arguments = shlex.split(line.replace("$JOB", str(job_id)))
            assert program == "baton"
            code, text = await baton(api, *arguments)
            assert code == 0, f"{line}: {text}"


async def test_the_sql_of_the_page_works(database_url: str, tmp_path: Path) -> None:
    async with serve(database_url, tmp_path, cluster="orders") as api:
        for block in blocks(PAGE):
            if block.language == "sql":
                (row,) = await api.sql(block.text)
                job = await api.get(row["enqueue"])
                assert job.payload == b'{"to": "a@example.org"}'


def test_the_configuration_of_the_page_is_valid(tmp_path: Path) -> None:
    (block,) = (block for block in blocks(PAGE) if block.language == "yaml")
    (tmp_path / "baton.yaml").write_text(block.text)
    settings = load(tmp_path / "baton.yaml", {}, need_postgres=False)
    assert settings.jobs.queues[0].rate == 100
