"""Two datasets that most mixtures are of."""

import pytest


@pytest.fixture
def two(shape):
    return [shape("prose", [70, 5, 40]), shape("code", [30, 30])]
