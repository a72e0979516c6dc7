// The keys of a key folder, without their secrets.

import { join } from 'node:path';
import { listCaseKeys } from '../../stores/keys/case-key-notes.js';
import { hasFile } from '../../stores/keys/key-file.js';
import { inspectPath } from '../../system/machine-facts.js';
import { nameOf } from '../../core/ledger/proof/key-history.js';
import { noteVerifier } from '../../core/ledger/proof/signed-note.js';
import type { KeyFolder } from '../home-paths.js';
import { readHomeHistory, readLedgerVerifier, rotationFiles } from '../ledger-key.js';

/**
 * `retired`: replaced, and its secret destroyed. `replacing`: replaced, and contents may still be under it. `erased`:
 * destroyed with the content of its case.
 */
export type KeyState = 'current' | 'retired' | 'replacing' | 'erased';

/** What is known of a key. */
export interface KeyFacts {
  /** What it does: signs the ledger, makes step proofs, signs the emergency overlay, or encrypts content of a case. */
  readonly purpose: 'ledger' | 'sessions' | 'overlay' | 'case';
  /** Of a ledger key its name and hash, which people compare. Of a case key its case and number. */
  readonly id: string;
  readonly state: KeyState;
  /** When it came into use, as far as that is known. */
  readonly since: string | null;
  /** Of a ledger key: the first entry that only it may vouch for, and the first one that it may not. */
  readonly from: number | null;
  readonly to: number | null;
}

/** @throws PolicyError for a damaged key or key history */
export function listKeys(keys: KeyFolder): readonly KeyFacts[] {
  const files = [
    ['sessions', keys.sessionKey],
    ['overlay', join(keys.keys, 'overlay.key')],
  ] as const;
  const others = files
    .filter(([, path]) => hasFile(path))
    .map(([purpose, path]) => keyFacts({ purpose, id: purpose, state: 'current', since: modifiedAt(path) }));
  const cases = listCaseKeys(keys.caseKeys).map(({ id, state, path }) =>
    keyFacts({ purpose: 'case', id, state, since: modifiedAt(path) }),
  );
  return [...ledgerKeys(keys), ...others, ...cases];
}

function ledgerKeys({ ledgerKey }: KeyFolder): readonly KeyFacts[] {
  const verifier = readLedgerVerifier(ledgerKey);
  if (verifier === null) return [];
  const rotations = readHomeHistory(ledgerKey)?.rotations ?? [];
  const first = rotations[0]?.old_key ?? verifier.vkey;
  const { retired } = rotationFiles(ledgerKey);
  // The file of a retired key is there only until the rotation is finished.
  const since = rotations.length === 0 && !hasFile(retired) ? modifiedAt(ledgerKey.privateKey) : null;
  const named = [{ vkey: first, since, from: 0 }, ...rotations.map(startOf)];
  return named.map(({ vkey, since: at, from }, index) => {
    const key = noteVerifier(vkey);
    const to = rotations[index]?.head.size ?? null;
    const state = to === null ? 'current' : 'retired';
    return keyFacts({ purpose: 'ledger', id: key === null ? vkey : nameOf(key), state, since: at, from, to });
  });
}

const startOf = ({ new_key, at, head }: NonNullable<ReturnType<typeof readHomeHistory>>['rotations'][number]) => ({
  vkey: new_key,
  since: at,
  from: head.size,
});

const keyFacts = (facts: Omit<KeyFacts, 'from' | 'to'> & Partial<KeyFacts>): KeyFacts => ({
  from: null,
  to: null,
  ...facts,
});

const modifiedAt = (path: string): string | null => inspectPath(path)?.modified_at ?? null;
