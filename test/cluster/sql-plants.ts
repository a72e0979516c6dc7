// Planted faults in the SQL functions of a ledger. They are edited as they are in the database, so a plant fails if the
// text that it replaces is no longer there.

import type { Plant } from './worker-options.js';

interface SqlPlant {
  readonly function: string;
  readonly edits: readonly (readonly [string, string])[];
  readonly before?: string;
}

const SQL_PLANTS: Partial<Readonly<Record<Plant, SqlPlant>>> = {
  'number before the locks': {
    before: 'ALTER SEQUENCE commit_numbers INCREMENT BY 1000',
    function: 'commit_batch',
    edits: [
      [
        `THEN nextval('commit_numbers') END`,
        `THEN s.ord +
           coalesce(nullif(current_setting('turnpike.drawn', true), '')::bigint, nextval('commit_numbers')) END`,
      ],
    ],
  },
  'double integration': {
    before: `ALTER TABLE log DROP CONSTRAINT log_pkey; ALTER TABLE log DROP CONSTRAINT log_tree_id_seq_key`,
    function: 'integrate_appends',
    edits: [
      ['IF (SELECT h.size FROM head h FOR UPDATE) IS DISTINCT FROM p_size_before THEN RETURN false; END IF;', ''],
      ['IF v_found <> cardinality(p_trees) OR', 'IF'],
    ],
  },
};

/** Plants a fault in the functions of a schema. @param exec runs SQL in that schema @throws if the text has changed */
export async function plantInSchema(
  plant: Plant,
  schema: string,
  exec: (sql: string) => Promise<readonly unknown[]>,
): Promise<void> {
  const found = SQL_PLANTS[plant];
  if (found === undefined) return;
  if (found.before !== undefined) await exec(found.before);
  const rows = (await exec(
    `SELECT pg_get_functiondef(p.oid) AS text FROM pg_proc p WHERE p.proname = '${found.function}'
     AND p.pronamespace = '${schema}'::regnamespace`,
  )) as readonly { readonly text: string }[];
  let text = rows[0]?.text ?? '';
  for (const [from, to] of found.edits) {
    if (!text.includes(from)) throw new Error(`${found.function} does not contain ${from}`);
    text = text.replace(from, to);
  }
  await exec(text);
}
