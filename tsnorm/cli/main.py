"""The `tsnorm` command: what there is, loaded when it is asked for."""

from __future__ import annotations

import importlib
import sys

import click

from tsnorm.errors import TsnormError

COMMANDS = {"backtest": "tsnorm.cli.backtest", "train": "tsnorm.cli.train"}
"""Command name -> module that defines it as ``command``."""


class LazyGroup(click.Group):
    """A group whose commands live in modules of their own."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Names of all commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Command by its name, None where there is none."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name]).command
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="tsnorm")
def group() -> None:
    """Every batch carries both static feature fields.

    Forecasting transformers train under DDP with find_unused_parameters=False.
    """


def main() -> None:
    """Run the command line: exit code 0 clean, 1 the job failed, 2 usage or input, 130 interrupted."""
    try:
        sys.exit(group.main(standalone_mode=False) or 0)
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except TsnormError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
