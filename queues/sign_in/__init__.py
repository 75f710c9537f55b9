"""How allauth is used here: its steps of a sign-in, its second factors, and what differs."""

from queues.sign_in.local import may_use_password
from queues.sign_in.records import has_factor, note_password, record_own, remove_factors

__all__ = ["has_factor", "may_use_password", "note_password", "record_own", "remove_factors"]
