"""One lane's state as the JSON values that a checkpoint holds, and back."""

from zephon.exec.lane_states import lane_from_dict, lane_to_dict
from zephon.exec.lane_table import table_of, trees_of


def lane_to_json(state):
    return table_of({0: lane_to_dict(state)})


def lane_from_json(saved):
    return lane_from_dict(0, trees_of(saved)[0])
