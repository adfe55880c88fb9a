"""Whose code a run's folder names: its task file is run only where nobody else could have written it."""

from __future__ import annotations

import os
import pwd
import stat
from typing import Optional

from .task import TaskError

__all__ = ["check_owners"]


def _owner(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _objection(path: str) -> Optional[str]:
    """Why somebody else may have written it; None for what is not there."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    if status.st_uid not in (os.geteuid(), 0):
        return f"belongs to {_owner(status.st_uid)}"
    is_sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
    return "may be written by everybody" if status.st_mode & stat.S_IWOTH and not is_sticky else None


def check_owners(configuration: str, task_file: str) -> None:
    """Raises TaskError unless the configuration that names the task file, the file and their folders belong to the user
    or root, and not everybody may write them."""
    for path in (os.path.dirname(os.path.abspath(configuration)), configuration,
                 os.path.dirname(os.path.abspath(task_file)), task_file):
        for place in dict.fromkeys((path, os.path.realpath(path))):
            if objection := _objection(place):
                raise TaskError(f"{configuration} names the Python file {task_file}, which would be run, and {place} "
                                f"{objection}: read that file, and give --trust (trust=True in Python) if you trust it; or "
                                "name a task file of your own by --task-file")
