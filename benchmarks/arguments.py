"""What the measurements on LoCoMo are told on the command line."""

from __future__ import annotations

import argparse
import os
from pathlib import Path


def parser_for_locomo(doc: str, *, cache: bool = True) -> argparse.ArgumentParser:
    """--data, --embedder and --dry; and --cache, where what was embedded may be kept.

    Args:
        doc: the docstring of the module; its first line says what is measured.
        cache: whether there is one.
    """
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument(
        "--data", type=Path, default=os.environ.get("ECHOIC_LOCOMO"), help="LoCoMo's JSON file"
    )
    parser.add_argument("--embedder", default="local", help='as for echoic.open; default "local"')
    parser.add_argument("--dry", action="store_true", help="print, and write nothing to results/")
    if cache:
        parser.add_argument("--cache", type=Path, help="keep what was embedded here, for the next run")
    return parser


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The arguments; the command ends here if there is no data."""
    args = parser.parse_args()
    if not args.data:
        parser.error("give the path of LoCoMo's JSON file with --data or in ECHOIC_LOCOMO")
    args.data = Path(args.data)
    return args
