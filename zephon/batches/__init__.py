"""What a batch is made of; its public names are handed on by ``zephon.types``.

Read ``identity`` and ``record`` (who a record is, and what it holds), ``columns`` (a batch as the
engine makes it), then the way to tensors: ``training_options`` (what is asked), ``training_rows``
(fields by name, and the matrix that they lie in), ``training`` (the answer). The package stands
between ``zephon.types`` above and ``zephon.collate`` and ``zephon.tensors`` below, which know no
record; it imports no dataset and no engine.
"""
