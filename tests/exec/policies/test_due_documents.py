"""When documents are due: starts after flat stretches of a course, and never where it ends flat."""

import math

import numpy as np

from zephon.exec.policies.due_documents import NEVER, due_times, first_never
from zephon.work.course import Courses


def steps(times, weights):
    left = np.array(weights, float)
    return Courses.of(np.array(times, float), left, left, np.ones(len(left)))


def due(courses, component, *amounts):
    starts, reached = due_times(courses, component, np.array(amounts, np.int64))
    # Where a course is flat, its end is found within a millionth of a token.
    return starts.round(4).tolist(), reached.tolist()


def test_constant_weights():
    courses = Courses.constant([0.25, 0.75, 0.0])
    assert due(courses, 0, 0, 5, 10) == ([0, 20, 40], [0, 20, 40])
    assert due(courses, 2, 0, 5)[0] == [math.inf, math.inf]
    together, _ = due_times(courses, np.array([0, 1, 2]), np.array([5, 6, 0]))
    assert together.tolist() == [20.0, 8.0, math.inf]


def test_a_start_waits_for_the_end_of_a_flat_stretch():
    courses = steps([0, 100, 300], [[0.5, 0.0, 0.5], [0.5, 1.0, 0.5]])
    assert due(courses, 0, 0, 49, 50, 60) == ([0, 98, 300, 320], [0, 98, 100, 320])
    late = steps([0, 100], [[0.0, 0.5], [1.0, 0.5]])
    starts, reached = due(late, 0, 0, 10)
    assert starts == [100.0, 120.0]
    assert reached == [0.0, 120.0]


def test_nothing_is_due_once_a_course_is_flat_for_ever():
    courses = steps([0, 100], [[0.5, 0.0], [0.5, 1.0]])
    assert due(courses, 0, 49, 50, 51) == ([98, math.inf, math.inf], [98, 100, math.inf])


def test_a_weight_that_rises_from_nothing_is_due_at_once():
    left = np.array([[0.0, 1.0], [1.0, 0.0]])
    right = np.array([[1.0, 1.0], [0.0, 0.0]])
    courses = Courses.of(np.array([0.0, 1000.0]), left, right, np.ones(2))
    starts, reached = due(courses, 0, 0, 10)
    assert starts[0] < 2
    assert reached[1] == np.sqrt(2 * 10 * 1000)


def test_large_amounts_keep_their_order():
    courses = steps([0, 100], [[0.3, 0.7], [0.7, 0.3]])
    amounts = np.arange(10**13, 10**13 + 1000)
    starts, reached = due_times(courses, 0, amounts)
    assert (np.diff(starts) >= 0).all()
    assert (np.diff(reached) > 0).all()
    assert starts.tolist() == reached.tolist()


def test_the_first_document_that_is_never_due():
    assert first_never([0.0, 1.0]) == NEVER
    assert first_never([0.0, math.inf, math.inf]) == 1
