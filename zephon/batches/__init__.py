"""What a batch is made of; its public names are handed on by ``zephon.types``.

Read ``identity`` and ``record`` (who a record is, and what it holds), ``columns`` (a batch as the
engine makes it), ``row_records`` and ``packed_payload`` (a row of it as a record, and what becomes
of its documents), then the way to tensors: ``training_options`` (what is asked), ``training_rows``
(fields by name, read by ``packed_samples`` and ``payload_values``), ``placements`` (how records say
that they were laid out), ``grid`` (the matrix that they lie in), ``documents`` (where documents
begin in it), ``training`` (the answer). The package stands between ``zephon.types`` above and
``zephon.collate`` and ``zephon.tensors`` below, which know no record; it imports no dataset and no
engine.
"""
