"""How ranks agree: each gives bytes to one of them, and gets back what that one made of all.

Read ``coordinator`` for what ranks can do together, ``collectives`` and ``rounds`` for the two ways
to do it, ``store`` for the little that a place must offer to be met in, and then one place a file.
``choosing`` says which of them a run's options mean. Nothing here knows what the bytes are.
"""

from zephon.coordination.choosing import host, meet, running_ranks
from zephon.coordination.coordinator import Asked, Coordinator, Participant
from zephon.coordination.store import Store

__all__ = ["Asked", "Coordinator", "Participant", "Store", "host", "meet", "running_ranks"]
