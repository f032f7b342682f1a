"""The number of threads follows what Linux says about waiting threads and idle processors."""

import os

import pytest

from runner.models.llama.pace import CHECK_SECONDS, Pace

TICKS = os.sysconf("SC_CLK_TCK")


class Machine:
    """A made-up `/proc`, in which time passes."""

    def __init__(self, proc, most):
        self.proc = proc
        self.set = []
        self.now, self.waited, self.idle = 100.0, 5.0, 50.0
        (proc / "self/task/1").mkdir(parents=True)
        (proc / "self/task/2").mkdir()
        self.pace = Pace(most, self.set.append, proc)
        self.pass_time(waiting=0, idle=0)

    def pass_time(self, *, waiting, idle, seconds=2 * CHECK_SECONDS):
        """``waiting`` threads wait and ``idle`` processors have nothing to do, all the time."""
        self.now += seconds
        self.waited += waiting * seconds
        self.idle += idle * seconds
        half = int(self.waited * 1e9 / 2)
        for thread in "12":
            (self.proc / f"self/task/{thread}/schedstat").write_text(f"777 {half} 3\n")
        (self.proc / "stat").write_text(f"cpu 1 2 3 {int(self.idle * TICKS)} 0 0\ncpu0 1 2 3 4\n")
        self.pace.check(self.now)
        return self.pace.threads


@pytest.fixture
def machine(tmp_path):
    return lambda most: Machine(tmp_path, most)


def test_a_quiet_machine_keeps_all_threads_and_says_nothing(machine):
    quiet = machine(2)
    assert [quiet.pass_time(waiting=0.1, idle=0) for _ in range(5)] == [2] * 5
    assert (quiet.set, quiet.pace.notices()) == ([], ())


def test_two_busy_neighbours_of_two_threads_leave_one_thread(machine):
    busy = machine(2)
    assert busy.pass_time(waiting=1.0, idle=0) == 1
    assert "1 of 2 threads" in busy.pace.notices()[0]
    assert "1 of 2 threads" in busy.pace.notices()[0], "it is busy still"


def test_all_threads_come_back_with_idle_processors_and_not_before(machine):
    busy = machine(2)
    busy.pass_time(waiting=1.0, idle=0)
    assert busy.pass_time(waiting=0, idle=0.3) == 1
    assert busy.pass_time(waiting=0, idle=1.0) == 2
    assert busy.set == [1, 2]
    busy.pace.notices()
    assert busy.pace.notices() == ()


def test_of_many_threads_as_many_go_as_wait(machine):
    busy = machine(16)
    assert busy.pass_time(waiting=3.9, idle=0) == 12
    assert busy.pass_time(waiting=0, idle=2.1) == 14


def test_there_is_always_one_thread(machine):
    busy = machine(2)
    assert [busy.pass_time(waiting=9, idle=0) for _ in range(3)] == [1, 1, 1]


def test_looks_are_rare_and_a_long_pause_counts_for_nothing(machine):
    busy = machine(4)
    assert busy.pass_time(waiting=4, idle=0, seconds=CHECK_SECONDS / 4) == 4
    assert busy.pass_time(waiting=4, idle=0, seconds=1000) == 4
    assert busy.pass_time(waiting=2, idle=0) == 2


def test_a_system_that_tells_nothing_keeps_all_threads(tmp_path):
    pace = Pace(4, [].append, tmp_path / "nothing")
    for now in range(1, 9):
        pace.check(float(now))
    assert pace.threads == 4
