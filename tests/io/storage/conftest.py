"""A hub for the tests of a module, quiet at the beginning of each."""

import pytest

from tests.io.storage.hub_here import hub_here


@pytest.fixture(scope="module")
def served_hub(tmp_path_factory):
    with hub_here(tmp_path_factory.mktemp("hf")) as hub:
        yield hub


@pytest.fixture
def hub(served_hub):
    served_hub.faults.clear()
    served_hub.log.clear()
    return served_hub
