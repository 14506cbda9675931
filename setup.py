"""Builds the compiled reader of pages.

Without a compiler, or with CRAWLSPACE_PURE=1 in the environment, the package is whole and reads pages in Python.
"""

import os

from setuptools import Extension, setup

READER = Extension("crawlspace.pages._scan", ["src/crawlspace/pages/_scan.c"], py_limited_api=True, optional=True)

setup(
    ext_modules=[] if os.environ.get("CRAWLSPACE_PURE") else [READER],
    # One wheel a platform, for all versions of Python from the first that we support.
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
