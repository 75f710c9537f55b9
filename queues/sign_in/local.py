"""Whether somebody may sign in with a password kept here."""

from django.conf import settings
from django.db.models import Q

from queues.choices import Role
from queues.models import User


def may_use_password(user: User) -> bool:
    """Return whether a password of ``user`` opens the door.

    ``LOCAL_SIGN_IN_ONLY`` names the one who may where there is an identity provider. Where nobody
    is called so who is an active admin with a password, every admin may: nobody is locked out.
    """
    only = settings.LOCAL_SIGN_IN_ONLY
    if not only or not settings.OIDC_ISSUER or user.get_username() == only:
        return True
    is_admin = Q(platform_roles__role=Role.ADMIN) | Q(is_superuser=True)
    admins = {one.get_username(): one for one in User.objects.filter(is_admin, is_active=True)}
    keeper = admins.get(only)
    is_kept = keeper is not None and keeper.has_usable_password()
    return not is_kept and user.get_username() in admins
