"""Backups of the whole database: one file, checked before anything is replaced.

``archive`` knows the file, ``engines`` the two kinds of database, ``running`` what may be restored
into what. A backup holds the hashes of passwords and tokens: only its owner may read the file.
"""

from gpuplatform.common.backups.archive import BackupError, Manifest
from gpuplatform.common.backups.running import backup, restore

__all__ = ["BackupError", "Manifest", "backup", "restore"]
