"""`python -m memshelf`."""

import sys

from memshelf.cli import main

sys.exit(main())
