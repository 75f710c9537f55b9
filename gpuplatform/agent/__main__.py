"""``python -m gpuplatform.agent``: the agent on a machine that has no platform."""

import argparse
import logging
import sys

from gpuplatform.agent.command import add_arguments, run

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
logging.getLogger("httpx").setLevel(logging.WARNING)
parser = argparse.ArgumentParser(prog="python -m gpuplatform.agent", description=__doc__)
add_arguments(parser)
sys.exit(run(vars(parser.parse_args())))
