"""The page: one document; its modules and styles are files under /static."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import FileResponse

STATIC = Path(str(files("echoic.server") / "static"))

router = APIRouter(include_in_schema=False)


@router.get("/")
async def page() -> FileResponse:
    """The page."""
    return FileResponse(STATIC / "index.html", media_type="text/html; charset=utf-8")


__all__ = ["STATIC", "router"]
