"""One rank of `tsnorm train`, as :func:`tsnorm.train.launch.launch` starts it."""

from __future__ import annotations

import sys

from tsnorm.train.job import train
from tsnorm.train.settings import TrainSettings

if __name__ == "__main__":
    train(TrainSettings.from_json(sys.argv[1]))
