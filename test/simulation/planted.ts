// Planted bugs, each in the ports only: a simulation that does not find them proves nothing.

import type { SandboxFacts } from '../../src/core/contract/run/effect.js';
import type { Entry, SealedEntry } from '../../src/core/contract/run/entry.js';
import { UNPINNED } from '../../src/core/contract/shapes.js';
import type { Clock } from '../../src/engine/ports/clock.js';
import type { Sandbox } from '../../src/engine/ports/effects/sandbox.js';
import type { Batch, CommitResult, LedgerStore } from '../../src/engine/ports/ledger/ledger-store.js';
import { ForwardingStore } from '../fixtures/forwarding-store.js';
import { Mirror } from './mirror.js';
import { Random } from './random.js';
import { isLocalRead } from './sandbox.js';
import type { Plant, World } from './world.js';

/** One event in this number is omitted, one child in this number is created without pins. */
const SELDOM = 0.02;
const HASTE_MS = 200;

type Store = NonNullable<Plant['store']>;
type Eager = (batch: Batch) => boolean;

const hasEntry = ({ trees }: Batch, isOne: (entry: Entry) => boolean): boolean =>
  trees.some(({ entries }) => entries.some(({ entry }) => isOne(entry)));

const hasTrace: Eager = (batch) => hasEntry(batch, ({ type }) => type === 'step_trace');
/** A db_write run is created where a change is about to be made. */
const hasIntent: Eager = (batch) =>
  hasEntry(batch, (entry) => entry.type === 'run_created' && entry.body.run_kind === 'db_write');

/** Acknowledges some batches before they are written; a crash loses them. */
const eager =
  (isEager: Eager): Store =>
  (inner, { world, process }) => {
    const late: Batch[] = [];
    // Batches are written in order, whatever else waits.
    const flush = async (): Promise<void> => {
      await Promise.all(late.splice(0).map((batch) => inner.commit(batch)));
    };
    const commit = async (batch: Batch): Promise<CommitResult> => {
      // An opening stays honest: what it fails to settle would show before any client gets a response.
      if (process.phase === 'opening' || !isEager(batch)) {
        await flush();
        return inner.commit(batch);
      }
      late.push(batch);
      world.agenda.add(process, 'late write', () => void flush().catch(() => undefined));
      return { head: null, first_log_indexes: null };
    };
    return replaced(inner, { commit });
  };

/** Forgets proposal ids and input ids. */
const forgetful: Store = (inner) =>
  replaced(inner, {
    marks: (keys) => Promise.resolve(keys.map(() => null)),
    commit: ({ epoch, trees }) =>
      inner.commit({ epoch, trees: trees.map((append) => ({ ...append, proposals: [], inputs: [] })) }),
  });

/** Gives the auditor a consistent history that differs from the system's own, as machines with a bug would. */
const telling = (rewrite: (entry: Entry, random: Random) => Entry | null): Store => {
  const mirrors = new WeakMap<World, Mirror>();
  return (inner, { world }) => {
    const random = new Random(`${world.seed}/plant`);
    const mirror = mirrors.get(world) ?? new Mirror(world.seen, (entry) => rewrite(entry, random));
    mirrors.set(world, mirror);
    const commit = async (batch: Batch): Promise<CommitResult> => {
      const result = await inner.commit(batch);
      mirror.tell(batch);
      return result;
    };
    return replaced(inner, { commit });
  };
};

/** Omits an event that S4 §6 requires. The root's events stay: their absence shows only when nothing follows. */
const forgetEvent = (entry: Entry, random: Random): Entry | null => {
  const required = entry.type === 'audit_event' && entry.body.outcome_reason !== 'INVALID_STATE_TRANSITION';
  return required && entry.body.parent_run_id !== undefined && random.chance(SELDOM) ? null : entry;
};

const forgetPins = (entry: Entry, random: Random): Entry | null => {
  if (entry.type !== 'run_created' || entry.body.parent_run_id === null || !random.chance(SELDOM)) return entry;
  const policy_versions = { ...entry.body.policy_versions, lanes: UNPINNED };
  return { ...entry, body: { ...entry.body, policy_versions } };
};

/** Executes everything twice. */
const actingTwice = (inner: Sandbox): Sandbox => ({
  ...inner,
  perform: (effect) => {
    inner.perform(effect);
    return inner.perform(effect);
  },
});

/** Treats every effect whose end it did not see as one that never happened. */
const settlingBlindly = (inner: Sandbox): Sandbox => ({
  ...inner,
  settle: () => ({ status: 'failed', cause: 'INTERRUPTED' }),
});

/** Reports an old usage of a case once in this number of queries, as if nothing had been written since. */
const measuringSeldom = (inner: Sandbox): Sandbox => {
  const known = new Map<string, { readonly usage: SandboxFacts['usage']; left: number }>();
  return {
    ...inner,
    gather: (request) => {
      const facts = inner.gather(request);
      const last = known.get(request.case_id);
      if (last === undefined || last.left === 0) known.set(request.case_id, { usage: facts.usage, left: 4 });
      else last.left -= 1;
      return facts.usage === null ? facts : { ...facts, usage: last?.usage ?? facts.usage };
    },
  };
};

/** Names another rule for a verdict than the machines did. */
const changeRule = (entry: Entry, random: Random): Entry | null => {
  const authz = entry.type === 'audit_event' ? entry.body.authz : undefined;
  if (entry.type !== 'audit_event' || authz === undefined || !random.chance(SELDOM)) return entry;
  return { ...entry, body: { ...entry.body, authz: { ...authz, rule_id: 'lane.other' } } };
};

/** A trace with a wrong step number. */
const miscount = (entry: Entry, random: Random): Entry | null =>
  entry.type === 'step_trace' && random.chance(SELDOM)
    ? { ...entry, body: { ...entry.body, step_index: entry.body.step_index + 1 } }
    : entry;

/** Creates a run under the id of the run that it belongs to. */
const bearAgain = (entry: Entry, random: Random): Entry | null => {
  if (entry.type !== 'run_created' || entry.body.parent_run_id === null || !random.chance(SELDOM)) return entry;
  return { ...entry, body: { ...entry.body, run_id: entry.body.parent_run_id } };
};

/** Fires early. */
const hasty = (inner: Clock): Clock => ({
  now: () => inner.now(),
  wake: (at, ring) => inner.wake(at - HASTE_MS, ring),
});

/** Retries a failed write although its result is unknown. */
const stubborn = (inner: LedgerStore): LedgerStore =>
  replaced(inner, { commit: (batch) => inner.commit(batch).catch(() => inner.commit(batch)) });

/** Reports every tree as ended. */
const oblivious: Store = (inner) =>
  replaced(inner, {
    trees: async function* () {
      for await (const tree of inner.trees()) yield { ...tree, ended: true };
    },
    openTrees: async function* () {
      // Omitted.
    },
  });

/** Never returns the result of one change in this number. */
const silent = (inner: Sandbox): Sandbox => {
  let changes = 0;
  return {
    ...inner,
    perform: (effect) => {
      if (isLocalRead(effect.action) || (changes += 1) % 4 !== 0) return inner.perform(effect);
      return new Promise<never>(() => undefined) as never;
    },
  };
};

/** Writes one entry in this number with an extra space. */
const untidy: Store = (inner, { world, process }) => {
  const random = new Random(`${world.seed}/plant/${process.id}`);
  const untidied = (sealed: SealedEntry): SealedEntry =>
    random.chance(SELDOM) ? { ...sealed, text: `${sealed.text} ` } : sealed;
  const commit = ({ epoch, trees }: Batch): Promise<CommitResult> =>
    inner.commit({ epoch, trees: trees.map((append) => ({ ...append, entries: append.entries.map(untidied) })) });
  return replaced(inner, { commit });
};

const eagerOutcome: Eager = (batch) => hasTrace(batch) && !hasIntent(batch);
const eagerIntent: Eager = (batch) => hasIntent(batch) && !hasTrace(batch);
const onDisk = { apart: false, folding: true } as const;
const toldWrongly = { apart: true, folding: false } as const;

/** The five that each simulation must find. */
export const PLANTS: readonly Plant[] = [
  { name: 'no-dedupe', expects: 'proposal.once', ...onDisk, store: forgetful },
  { name: 'ack-before-commit', expects: 'acknowledged.durable', ...onDisk, store: eager(eagerOutcome) },
  { name: 'effect-before-commit', expects: 'effect.allowed', ...onDisk, store: eager(eagerIntent) },
  { name: 'missing-event', expects: 'events.required', ...toldWrongly, store: telling(forgetEvent) },
  { name: 'child-without-pins', expects: 'run.inherits', ...toldWrongly, store: telling(forgetPins) },
];

/** Further ones, for the invariants that the five do not violate. */
export const MORE_PLANTS: readonly Plant[] = [
  { name: 'other-rule', expects: 'fold.same', apart: true, folding: true, store: telling(changeRule) },
  { name: 'acts-twice', expects: 'effect.once', ...onDisk, hands: actingTwice },
  { name: 'miscounts', expects: 'step.complete', ...toldWrongly, store: telling(miscount) },
  { name: 'born-again', expects: 'terminal.immutable', ...toldWrongly, store: telling(bearAgain) },
  { name: 'rings-early', expects: 'timer.early', ...onDisk, clock: hasty },
  { name: 'tries-again', expects: 'fail.closed', ...onDisk, over: stubborn },
  { name: 'settles-nothing', expects: 'reopen.settled', ...onDisk, store: oblivious },
  { name: 'never-answers', expects: 'caller.answer', ...onDisk, hands: silent },
  { name: 'untidy-text', expects: 'chain.whole', ...onDisk, store: untidy },
  // The auditor's disk receives no marks.
  { name: 'marks-lost', expects: 'ledger.verifies', ...toldWrongly, store: telling((entry) => entry) },
  { name: 'stale-usage', expects: 'quota.held', quota: true, ...onDisk, hands: measuringSeldom },
  { name: 'settles-blindly', expects: 'effect.truth', ...onDisk, hands: settlingBlindly },
];

/** A store with some of its methods replaced. */
const replaced = (inner: LedgerStore, methods: Partial<LedgerStore>): LedgerStore =>
  Object.assign(new ForwardingStore(inner), methods);
