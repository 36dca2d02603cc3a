"""The command line's frame: the group of commands, and how errors and exit codes leave the program."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from importlib import metadata
from typing import Any, NoReturn

import click

from ..face.guard.own_streams import ReaderGone, end_program, keep_streams, own_streams, refuse_other_ends
from ..face.user_errors import as_user_error
from ..ir.errors import DeadlockError, KernscopeError, UnmatchedMessageError
from ..linter import Diagnostic
from .colours import painted
from .draw import draw
from .explain import explain, machine
from .fit import fit
from .lint import lint
from .lsp import lsp
from .report import report
from .run import run
from .schedule import schedule
from .settings import Settings, with_settings
from .solve import solve
from .sweep import sweep
from .timeline import timeline
from .trace import trace
from .triton import triton

__all__ = ["main", "program"]

#: As a shell has it of a program that the signal SIGPIPE ends.
_READER_GONE = 128 + 13

_EPILOG = """\b
Examples:
  kernscope report kernels/flash_attention.py
  kernscope lint kernels/ --output-format concise
  kernscope schedule kernels/matmul.py::matmul --launch small --set gemm.rows=128
  kernscope run my_kernel.py --arg tile=64 --order list --poison
  kernscope fit kernels/flash_attention.py --param tile --range 32:1024:32

TARGET is path/file.py, path/file.py::kernel or package.module:kernel.

Exit status: 0 all is well; 1 findings at error level, a mismatch with the reference, or a deadlock under the policy
asked for; 2 the tool could not do its work.
"""


@click.group(epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(metadata.version("kernscope"), "-V", "--version", prog_name="kernscope")
def app() -> None:
    """See what a tile kernel will do on an accelerator: trace it once, then schedule, lint, execute and draw it."""


for _command in (trace, lint, schedule, run, draw, timeline, report, fit, sweep, solve, triton, explain, machine, lsp):
    app.add_command(with_settings(_command))
with_settings(app)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; its exit status. Errors are printed, never raised (with ``--debug`` their traceback
    too)."""
    with own_streams():
        return _main(list(sys.argv[1:] if arguments is None else arguments))


def program() -> NoReturn:
    """The command line as a program: it ends the process, however an author's code would have it."""
    refuse_other_ends()
    keep_streams()
    end_program(main())


def _main(given: Sequence[str]) -> int:
    held = Settings()
    try:
        result: Any = app.main(args=list(given), prog_name="kernscope", standalone_mode=False, obj=held)
        return result if isinstance(result, int) else 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except ReaderGone:
        return _READER_GONE
    except click.Abort:
        click.echo("aborted", err=True)
        return 130
    except Exception as error:  # the last handler: exit status 1 means findings, and is never a crash of ours
        return _tell(as_user_error(error), held)


def _tell(error: KernscopeError, held: Settings) -> int:
    """Print an error in the form of a finding; the exit status."""
    if held.debug:
        traceback.print_exception(error)
    diagnostic = Diagnostic.of_error(error)
    click.echo(painted(str(diagnostic)), err=True, color=held.colour)
    return 1 if isinstance(error, DeadlockError | UnmatchedMessageError) else 2
