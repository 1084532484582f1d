"""Arguments that several commands share, and their checks."""

import argparse
import re

from sidecar.model import duration

COUNT_MAX = 1000


def add_command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    help_: str,
    module: str = "",
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=help_, description=help_[0].upper() + help_[1:] + ".")
    command.set_defaults(module=module or name)
    return command


def add_address(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--config",
        metavar="FILE",
        help="take address and token of the API from this file (default: BATON_CONFIG)",
    )
    command.add_argument(
        "--address",
        metavar="ADDRESS",
        help="the sidecar's API (default: BATON_API_ADDRESS or 127.0.0.1:9401)",
    )


def text(argument: str) -> str:
    """Refuse bytes that are not UTF-8: gRPC sends text as UTF-8."""
    try:
        argument.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError("is not UTF-8") from None
    return argument


def count(argument: str) -> int:
    if not re.fullmatch(r"[0-9]{1,4}", argument) or not 1 <= int(argument) <= COUNT_MAX:
        raise argparse.ArgumentTypeError(f"is not a number from 1 to {COUNT_MAX}")
    return int(argument)


def job_id(argument: str) -> int:
    if not re.fullmatch(r"[0-9]{1,19}", argument) or not 0 < int(argument) < 2**63:
        raise argparse.ArgumentTypeError("is not the id of a job")
    return int(argument)


def seconds(argument: str) -> float:
    try:
        return duration.parse(argument)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def label(argument: str) -> tuple[str, str]:
    key, equals, value = text(argument).partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError("is not KEY=VALUE")
    return key, value
