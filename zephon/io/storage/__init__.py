"""Places where datasets lie besides the local disk, one a file.

Read ``place`` first: what every place can do. Then ``objects`` → ``object_urls``,
``object_stores``, ``object_faults``, ``forked``, ``object_reader``; and ``hub`` → ``hub_grammar``,
``hub_choice``, ``hub_conversion``, ``hub_original`` (``card_configs``, ``globs``,
``split_names``), ``hub_place``, ``hub_client``, ``hub_requests``, ``hub_login``; ``hub_models``.
All of them use ``patience`` and ``ranges``.
"""
