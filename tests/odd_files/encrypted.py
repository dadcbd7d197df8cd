"""Encrypted Parquet files, with keys that nobody else has."""

import base64

import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe


class _Keys(pe.KmsClient):
    """Wraps keys in their own names."""

    def wrap_key(self, key_bytes, master_key_identifier):
        return base64.b64encode(master_key_identifier.encode().ljust(16) + key_bytes)

    def unwrap_key(self, wrapped_key, master_key_identifier):
        return base64.b64decode(wrapped_key)[16:]


def encrypted(table, path, *, columns, footer):
    """Write a table of which some columns are encrypted, and the footer too if ``footer``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    wanted = pe.EncryptionConfiguration(
        footer_key="footer", column_keys={"columns": columns}, plaintext_footer=not footer
    )
    factory = pe.CryptoFactory(lambda _: _Keys())
    properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), wanted)
    with pq.ParquetWriter(path, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)
