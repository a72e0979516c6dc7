// Random ledgers, every attack on every entry of them, by three attackers. The rules:
//
//   An attack without a corrected chain, or by an attacker who cannot write the external head, is always found. A naive
//   attack is found at the entry or its neighbour, with its kind, if the tree has an entry after it. After the last
//   entry of a tree, an inserted input may be one that the machines would have accepted: then the head reveals one
//   entry too many.
//   An attack by an attacker who can write everything is found if it concerns an entry that the machines have emitted:
//   at the entry or its neighbour. Changed inputs may result in a history that the machines could have recorded; those
//   are counted.

import { leafHash } from '../../src/core/ledger/proof/merkle.js';
import type { LedgerProblem } from '../../src/core/ledger/verification/ledger-problem.js';
import { Tally } from '../crash/tally.js';
import { ATTACKERS, attacksOn, type Attack, type Attacker } from './attacks.js';
import { headOf, problemsOf, randomLedger, rechained, type Ledger } from './ledgers.js';

export interface Options {
  readonly seed: number;
  readonly runs: number;
  /** One attack in this number is tried; 1 for all. */
  readonly every?: number;
  readonly say?: (line: string) => void;
}

export async function tamper({ seed, runs, every = 1, say }: Options): Promise<readonly Tally[]> {
  const tallies = new Map(ATTACKERS.map((attacker) => [attacker, new Tally(attacker)]));
  let turn = 0;
  for (let run = 0; run < runs; run += 1) {
    const ledger = randomLedger(seed + run);
    const sound = await problemsOf(ledger);
    for (const [, tally] of tallies) tally.that(sound.length === 0, () => `run ${seed + run} is not sound`);
    for (const attack of attacksOn(ledger.rows)) {
      for (const [attacker, tally] of tallies) {
        if (attack.only === 'naive' && attacker !== 'naive') continue;
        turn += 1;
        if (turn % every !== 0) continue;
        await judge(tally, ledger, attack, attacker, seed + run);
      }
    }
    if (run % 10 === 9)
      say?.(`${run + 1} runs, ${[...tallies.values()].reduce((sum, { cases }) => sum + cases, 0)} attacks`);
  }
  return [...tallies.values()];
}

/** The tampered store, by attacker; null if nothing is changed after all. */
function after(ledger: Ledger, { rows }: Attack, attacker: Attacker): Ledger | null {
  if (attacker === 'naive') return { ...ledger, rows };
  const hashed = rows.map((row) => ({ ...row, leaf_hash: leafHash(row.text) }));
  const forged = rechained(hashed);
  const head = headOf(forged);
  if (head.root === ledger.head.root) return null;
  return { rows: forged, head, externalHeadStore: attacker === 'insider' ? head : ledger.externalHeadStore };
}

async function judge(tally: Tally, ledger: Ledger, attack: Attack, attacker: Attacker, seed: number): Promise<void> {
  const left = after(ledger, attack, attacker);
  if (left === null) return;
  tally.cases += 1;
  const problems = await problemsOf(left);
  const near = problems.filter((problem) => isNear(problem, attack, ledger));
  const named = near.some(({ kind }) => attack.kinds.includes(kind));
  const label = (): string =>
    `run ${seed} entry ${attack.index} (${attack.row.type}) ${attack.name} ${attack.label}: ` +
    (problems
      .map(({ log_index, seq, rule, kind }) => `${log_index ?? 'log'}/${seq ?? ''} ${rule} ${kind}`)
      .join(', ') || 'nothing found');
  const what = attack.name;
  tally.note(`${what}: tried`);
  if (near.length > 0) tally.note(`${what}: at the entry`);
  if (named) tally.note(`${what}: by its kind`);
  if (near.length === 0 && problems.length > 0)
    tally.note(`${what}: ${isElsewhere(problems) ? 'elsewhere' : 'by the head'}`);
  if (problems.length === 0) tally.note(`${what}: not found`);
  if (problems.some(({ rule }) => OF_COMPLETENESS.test(rule))) tally.note(`${what}: incomplete as well`);
  const must = attacker === 'insider' ? isOfMachines(attack, ledger) : true;
  tally.that(problems.length > 0 || !must, () => `not found: ${label()}`);
  if (problems.length === 0 || attack.name === 'cut') return;
  const place = attacker === 'naive' ? hasPlace(attack, ledger) : isOfMachines(attack, ledger);
  tally.that(near.length > 0 || !place, () => `not at its place: ${label()}`);
  if (near.length > 0 && place) tally.that(named, () => `by another kind: ${label()}`);
}

const OF_COMPLETENESS = /^(?:tree\.unopened|entry\.time|refusal|run|end|act|outcome|step|vote)\b/;

const isElsewhere = (problems: readonly LedgerProblem[]): boolean =>
  problems.some(({ rule }) => !rule.startsWith('head.'));

/** The entry itself, or the one before or after it: in its tree or in the log. */
function isNear(
  { log_index, tree_id, seq, rule }: LedgerProblem,
  { index, row, name }: Attack,
  { rows }: Ledger,
): boolean {
  if (rule.startsWith('head.')) return name === 'cut' && (log_index === index || log_index === null);
  if (tree_id === row.tree_id && seq !== null && Math.abs(seq - row.seq - 0.5) <= 1.5) return true;
  const next = rows[index + 1];
  if (name === 'exchanged' && tree_id === next?.tree_id && seq !== null && Math.abs(seq - next.seq) <= 1) return true;
  return log_index !== null && Math.abs(log_index - index - 0.5) <= 1.5;
}

/** Whether the chain of a tree can reveal it: an entry follows, and exchanged entries are of one tree. */
function hasPlace({ name, row, index, inTree }: Attack, { rows }: Ledger): boolean {
  if (name === 'exchanged') return inTree;
  const isLast = !rows.slice(index + 1).some(({ tree_id }) => tree_id === row.tree_id);
  return !isLast || (name !== 'deleted' && !(name === 'inserted' && row.type === 'input'));
}

/** Whether the machines have emitted the entry: only inputs come from elsewhere. */
function isOfMachines({ name, row, index, inTree }: Attack, { rows }: Ledger): boolean {
  if (name === 'cut') return row.type !== 'input';
  if (name === 'exchanged') return inTree && (row.type !== 'input' || rows[index + 1]?.type !== 'input');
  return row.type !== 'input';
}
