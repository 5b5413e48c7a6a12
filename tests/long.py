"""Runs end-to-end files whole that ./check shortens: `tests/long.py link_cut crash_point`, after a build."""
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
os.environ["CAUSEWAY_LONG"] = "1"
os.environ["CAUSEWAY_BUILD_DIR"] = os.path.abspath(os.environ.get("CAUSEWAY_BUILD", os.path.join(HERE, "..", "build")))
sys.path.insert(0, os.path.join(HERE, "e2e"))
suite = unittest.TestSuite(unittest.TestLoader().loadTestsFromName(name + "_test") for name in sys.argv[1:])
sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())
