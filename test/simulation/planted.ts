// Five bugs on purpose, each put on the ports and nowhere else: a simulation that does not find them finds nothing.

import type { SandboxFacts } from '../../src/contract/run/effect.js';
import type { Entry, SealedEntry } from '../../src/contract/run/entry.js';
import { UNPINNED } from '../../src/contract/shapes.js';
import type { Clock } from '../../src/ports/clock.js';
import type { Sandbox } from '../../src/ports/effects/sandbox.js';
import type { Batch, CommitResult, LedgerStore } from '../../src/ports/ledger/ledger-store.js';
import { ForwardingStore } from '../fixtures/forwarding-store.js';
import { Mirror } from './mirror.js';
import { Random } from './random.js';
import { isLocalRead } from './sandbox.js';
import type { Plant, World } from './world.js';

/** One event in so many is forgotten, one child in so many is born without pins. */
const SELDOM = 0.02;
const HASTE_MS = 200;

type Store = NonNullable<Plant['store']>;
type Eager = (batch: Batch) => boolean;

const hasEntry = ({ trees }: Batch, isOne: (entry: Entry) => boolean): boolean =>
  trees.some(({ entries }) => entries.some(({ entry }) => isOne(entry)));

const hasTrace: Eager = (batch) => hasEntry(batch, ({ type }) => type === 'step_trace');
/** A db_write run is born where a change is about to be made. */
const hasIntent: Eager = (batch) =>
  hasEntry(batch, (entry) => entry.type === 'run_created' && entry.body.run_kind === 'db_write');

/** Acknowledges the batches it is eager for before they are written; a crash loses them. */
const eager =
  (isEager: Eager): Store =>
  (inner, { world, process }) => {
    const late: Batch[] = [];
    // Batches are written in their order, whatever else waits.
    const flush = async (): Promise<void> => {
      await Promise.all(late.splice(0).map((batch) => inner.commit(batch)));
    };
    const commit = async (batch: Batch): Promise<CommitResult> => {
      // An opening is left honest: what it fails to settle would show before anybody is answered.
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

/** Remembers neither proposal ids nor input ids. */
const forgetful: Store = (inner) =>
  replaced(inner, {
    marks: (keys) => Promise.resolve(keys.map(() => null)),
    commit: ({ epoch, trees }) =>
      inner.commit({ epoch, trees: trees.map((append) => ({ ...append, proposals: [], inputs: [] })) }),
  });

/** Tells the auditor another story than the system's own, consistent in itself: as machines with a bug would. */
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

/** Forgets an event that S4 §6 requires. The root's are left: their absence shows only when nothing follows. */
const forgetEvent = (entry: Entry, random: Random): Entry | null => {
  const required = entry.type === 'audit_event' && entry.body.outcome_reason !== 'INVALID_STATE_TRANSITION';
  return required && entry.body.parent_run_id !== undefined && random.chance(SELDOM) ? null : entry;
};

const forgetPins = (entry: Entry, random: Random): Entry | null => {
  if (entry.type !== 'run_created' || entry.body.parent_run_id === null || !random.chance(SELDOM)) return entry;
  const policy_versions = { ...entry.body.policy_versions, lanes: UNPINNED };
  return { ...entry, body: { ...entry.body, policy_versions } };
};

/** Does everything once more, to be sure. */
const actingTwice = (inner: Sandbox): Sandbox => ({
  ...inner,
  perform: (effect) => {
    inner.perform(effect);
    return inner.perform(effect);
  },
});

/** Takes every effect that it did not see end for one that never happened. */
const settlingBlindly = (inner: Sandbox): Sandbox => ({
  ...inner,
  settle: () => ({ status: 'failed', cause: 'INTERRUPTED' }),
});

/** Measures the usage of a case once in so many times, as if nothing was written between. */
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

/** A verdict by another rule than the machines named. */
const changeRule = (entry: Entry, random: Random): Entry | null => {
  const authz = entry.type === 'audit_event' ? entry.body.authz : undefined;
  if (entry.type !== 'audit_event' || authz === undefined || !random.chance(SELDOM)) return entry;
  return { ...entry, body: { ...entry.body, authz: { ...authz, rule_id: 'lane.other' } } };
};

/** A trace that counts its run's steps wrongly. */
const miscount = (entry: Entry, random: Random): Entry | null =>
  entry.type === 'step_trace' && random.chance(SELDOM)
    ? { ...entry, body: { ...entry.body, step_index: entry.body.step_index + 1 } }
    : entry;

/** A run that comes to life under the id of the run that it belongs to. */
const bearAgain = (entry: Entry, random: Random): Entry | null => {
  if (entry.type !== 'run_created' || entry.body.parent_run_id === null || !random.chance(SELDOM)) return entry;
  return { ...entry, body: { ...entry.body, run_id: entry.body.parent_run_id } };
};

/** Rings before it should. */
const hasty = (inner: Clock): Clock => ({
  now: () => inner.now(),
  wake: (at, ring) => inner.wake(at - HASTE_MS, ring),
});

/** Tries once more what could not be written: nobody knows what of it is there. */
const stubborn = (inner: LedgerStore): LedgerStore =>
  replaced(inner, { commit: (batch) => inner.commit(batch).catch(() => inner.commit(batch)) });

/** Says of every tree that it has ended. */
const oblivious: Store = (inner) =>
  replaced(inner, {
    trees: async function* () {
      for await (const tree of inner.trees()) yield { ...tree, ended: true };
    },
    openTrees: async function* () {
      // None.
    },
  });

/** Never says what became of one change in so many. */
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

/** Writes one entry in so many with a space too much. */
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

/** Further ones: what the five do not reach must be able to fail as well. */
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
  // What the auditor's disk is told has no marks beside it.
  { name: 'marks-lost', expects: 'ledger.verifies', ...toldWrongly, store: telling((entry) => entry) },
  { name: 'stale-usage', expects: 'quota.held', quota: true, ...onDisk, hands: measuringSeldom },
  { name: 'settles-blindly', expects: 'effect.truth', ...onDisk, hands: settlingBlindly },
];

/** A store with some of its methods replaced. */
const replaced = (inner: LedgerStore, methods: Partial<LedgerStore>): LedgerStore =>
  Object.assign(new ForwardingStore(inner), methods);
