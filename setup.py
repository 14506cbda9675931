"""Builds what is compiled: the reader of pages, and the SimHash of texts.

Without a compiler, or with CRAWLSPACE_PURE=1 in the environment, the package is whole and does both in Python.
"""

import os

from setuptools import Extension, setup

COMPILED = [
    Extension(
        f"crawlspace.{name}", [f"src/crawlspace/{name.replace('.', '/')}.c"], py_limited_api=True, optional=True
    )
    for name in ("content._words", "pages._scan")
]

setup(
    ext_modules=[] if os.environ.get("CRAWLSPACE_PURE") else COMPILED,
    # One wheel a platform, for all versions of Python from the first that we support.
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
