# SPDX-License-Identifier: Apache-2.0
"""A slice of a public suite of tests of system calls: each ends under the agent as without it. tests/suites/run has the rest."""
import os
import subprocess

import pytest

from conftest import HERE, STILLFRAME, need_agent

pytestmark = pytest.mark.waits
SLICE = ["test_epoll", "test_mmap", "test_popen"]


def test_a_slice_of_pythons_own_tests():
    need_agent()
    done = subprocess.run([os.path.join(HERE, "../suites/run"), "--build", os.path.dirname(STILLFRAME), *SLICE],
                          capture_output=True, text=True, timeout=100)
    if done.returncode == 77:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0 and done.stdout.count("ok ") == len(SLICE), done.stdout + done.stderr
