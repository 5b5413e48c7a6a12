"""Runs end-to-end files whole that ./check shortens: `CAUSEWAY_LONG=1 CAUSEWAY_BUILD_DIR=build tests/long.py NAME...`."""
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
os.environ["CAUSEWAY_BUILD_DIR"] = os.path.abspath(os.environ["CAUSEWAY_BUILD_DIR"])
sys.path.insert(0, os.path.join(HERE, "e2e"))
suite = unittest.TestSuite(unittest.TestLoader().loadTestsFromName(name + "_test") for name in sys.argv[1:])
sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())
