// How messages and pages name an entry: `@55` is entry 55 of the ledger, `run_…#24` is entry 24 of a run tree.

/** Entry `log_index` of the ledger. */
export const nameInLedger = (log_index: number): string => `@${log_index}`;

/** Entry `seq` of a run tree or session. */
export const nameInTree = (tree_id: string, seq: number): string => `${tree_id}#${seq}`;

/** Both names of an entry: `@55 (run_…#24)`. */
export const nameBoth = (log_index: number, tree_id: string, seq: number): string =>
  `${nameInLedger(log_index)} (${nameInTree(tree_id, seq)})`;

/** The first `count` entries of a ledger, which are in archive files. */
export const archivedText = (count: number): string =>
  `entries ${nameInLedger(0)} to ${nameInLedger(count - 1)} are archived`;
