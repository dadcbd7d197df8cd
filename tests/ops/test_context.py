"""What operators are told, and what they may ask for."""

import pytest

from zephon.errors import PlanError
from zephon.ops import OpContext, StageInfo
from zephon.ops.accumulators import SourceExhaustion
from zephon.ops.context import OpServices


def test_services_are_asked_for_by_name_as_of_a_dict():
    context = OpContext({"io_options": 5})
    assert context.get("io_options") == context["io_options"] == 5
    assert context.get("missing") is None
    assert context.get("missing", 7) == 7
    assert dict(context) == {"io_options": 5}
    assert context.stage_info == StageInfo(-1, "", -1, False)


def test_the_engine_offers_all_services_under_their_public_names():
    services = OpServices(
        datasets_by_id={3: "corpus"},
        io_options="options",
        component_ids={"web": 0, "code": 1},
        chunk_mixture=lambda lane, chunk: {0: lane / chunk},
        source_exhaustion=lambda lane: SourceExhaustion(frozenset({lane})),
    )
    stage = StageInfo(1, "map", 2, collect_stats=True)
    context = services.context(stage)
    assert context.stage_info is stage
    assert context.get("datasets_by_id") == {3: "corpus"}
    assert context.get("io_options") == "options"
    assert context.get("get_component_id")("code") == 1
    assert context.get("get_component_name")(0) == "web"
    assert context.get("get_chunk_mixture")(1, 4) == {0: 0.25}
    assert context.get("get_source_exhaustion")(6).exhausted == {6}


def test_without_an_engine_nothing_is_known_and_nothing_has_ended():
    context = OpServices().context()
    assert context.get("get_chunk_mixture")(0, 0) is None
    assert context.get("get_source_exhaustion")(0) == SourceExhaustion(
        exhausted=frozenset(), continuing=frozenset(), final_component=None
    )


def test_components_that_do_not_exist_are_refused():
    services = OpServices(component_ids={"web": 0, "code": 1})
    with pytest.raises(PlanError, match=r"^get_component_id: no component 'cod'; did you mean 'co"):
        services.component_id("cod")
    with pytest.raises(PlanError, match=r"^get_component_name: no component 7; known are: 0, 1$"):
        services.component_name(7)
