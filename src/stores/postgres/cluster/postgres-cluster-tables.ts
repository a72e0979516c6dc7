// What workers report about themselves, and which key folder a ledger belongs to. The tables of format 2.

/** Migration from format 1 to format 2. Workers of format 1 go on meanwhile: each new column has a default. */
export const CLUSTER_OF_FORMAT_2 = `
  CREATE TABLE installation (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    ledger_id text NOT NULL,
    vkey text NOT NULL,
    volume_id text NOT NULL
  );
  ALTER TABLE performers
    ADD COLUMN joined_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ADD COLUMN version text,
    ADD COLUMN address text,
    ADD COLUMN volume_id text,
    ADD COLUMN overlay_epoch integer;
  ALTER TABLE pending ADD COLUMN since timestamptz NOT NULL DEFAULT clock_timestamp();`;
