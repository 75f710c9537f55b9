"""The ASGI door; uvicorn serves it."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gpuplatform.settings")
os.environ["GPUPLATFORM_ROLE"] = "web"  # which pools its connections
django.setup(set_prefix=False)

from gpuplatform.common.bodies import BoundedBodies  # noqa: E402  # settings are there now
from gpuplatform.common.memory import settle  # noqa: E402  # as above
from gpuplatform.common.serving import ThreadedHandler  # noqa: E402

application = BoundedBodies(ThreadedHandler())
settle()
