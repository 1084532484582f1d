"""Work beside the main flow: its failure is logged and stops nothing else."""

from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from sidecar.model.errors import SidecarError

log = structlog.get_logger()


@contextmanager
def failures_logged(task: str) -> Iterator[None]:
    """Log what fails inside instead of raising it."""
    try:
        yield
    except SidecarError as error:
        log.info("background_task_failed", task=task, problem=str(error), reason=error.reason)
    except Exception:
        log.exception("background_task_failed", task=task)
