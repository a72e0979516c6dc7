// The versions of the labels of cases, in the rows of the cases. An append that contains the label of its case is
// committed only if the case still has the version with which it was computed.

import type { SharedAppend } from '../../../engine/ports/ledger/shared-store.js';
import type { ReaderPool } from '../postgres-connection.js';
import { idParameter, integerOf } from '../values/postgres-values.js';

interface LabelRow {
  /** The position of the append, from 1. */
  readonly tree: number;
  readonly case_id: string;
  readonly version: number | null;
  readonly raised: boolean;
}

/** What the appends of a batch do with labels, as the functions below read it. */
export const labelChanges = (trees: readonly SharedAppend[]): readonly LabelRow[] =>
  trees.flatMap(({ label }, at) =>
    label === null ? [] : [{ tree: at + 1, case_id: label.case_id, version: label.version, raised: label.isRaised }],
  );

const VERSION = 'SELECT c.label_version FROM cases c WHERE c.case_id = $1';

/** See `SharedLedgerStore.labelVersion`. */
export async function readLabelVersion(pool: ReaderPool, case_id: string): Promise<number> {
  const [row] = await pool.read(VERSION, [idParameter(case_id)]);
  return row === undefined ? 0 : integerOf(row, 'label_version', 'a case');
}

/** The changes as rows. */
const LABELS = `jsonb_to_recordset(p_quota -> 'labels')
  AS l (tree integer, case_id text, version bigint, raised boolean)`;

/**
 * commit_batch calls these functions under its locks. They do for labels what the functions for reservations do, and
 * call those.
 */
export const CREATE_QUOTA_FUNCTIONS = `
  CREATE FUNCTION lock_quotas(p_quota jsonb, p_cases text[]) RETURNS void LANGUAGE plpgsql AS $body$
  BEGIN
    PERFORM lock_reservations(p_quota, p_cases || (SELECT array_agg(l.case_id) FROM ${LABELS}));
  END $body$;
  CREATE FUNCTION quota_statuses(p_quota jsonb, p_statuses text[]) RETURNS text[] LANGUAGE plpgsql AS $body$
  DECLARE
    v_statuses text[] := p_statuses;
    v_tree integer;
  BEGIN
    FOR v_tree IN
      SELECT l.tree FROM ${LABELS} JOIN cases c ON c.case_id = l.case_id
      WHERE l.version IS NOT NULL AND p_statuses[l.tree] = 'committed' AND (c.label_version <> l.version OR EXISTS (
        SELECT FROM ${LABELS.replace('AS l ', 'AS o ')}
        WHERE o.case_id = l.case_id AND o.raised AND o.tree <> l.tree AND p_statuses[o.tree] = 'committed'))
    LOOP
      v_statuses[v_tree] := 'conflict';
    END LOOP;
    RETURN reservation_statuses(p_quota, v_statuses);
  END $body$;
  CREATE FUNCTION store_quotas(p_quota jsonb, p_statuses text[], p_trees text[]) RETURNS void LANGUAGE plpgsql AS $body$
  BEGIN
    PERFORM store_reservations(p_quota, p_statuses, p_trees);
    UPDATE cases c SET label_version = c.label_version + 1 WHERE c.case_id IN (
      SELECT l.case_id FROM ${LABELS} WHERE l.raised AND p_statuses[l.tree] = 'committed');
  END $body$;`;
