"""The ASGI door; uvicorn serves it."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gpuplatform.settings")
os.environ["GPUPLATFORM_ROLE"] = "web"  # which pools its connections
django_application = get_asgi_application()

from gpuplatform.common.bodies import BoundedBodies  # noqa: E402  # settings are there now
from gpuplatform.common.memory import settle  # noqa: E402  # as above

application = BoundedBodies(django_application)
settle()
