"""``python -m gpuplatform.client`` is ``gpuctl``."""

from gpuplatform.client.main import run

run()
