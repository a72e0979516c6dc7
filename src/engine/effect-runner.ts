// Runs effects through the embedding service's `Effects`, unless they are suspended. Its results are untrusted, so each
// is validated.

import {
  SandboxFacts,
  type Effect,
  type EffectResult,
  type GatherRequest,
  type SandboxRequest,
} from '../core/contract/run/effect.js';
import { DecisionFact, type DecisionQuery, type DecisionReply } from '../core/contract/policy/decision-points.js';
import { TOOL_WORDS_CHARS_MAX } from '../core/contract/run/response.js';
import { EXECUTION_CAUSES, type ExecutionCause } from '../core/contract/fault.js';
import { isJsonObject } from '../core/contract/json.js';
import { isConforming } from '../core/contract/validators.js';
import { sha256 } from '../core/contract/hash.js';
import { changedPaths } from '../core/contract/policy/catalogue.js';
import { grantCapability, revokeCapability } from './ports/effects/capability.js';
import { executionSuspendedError } from './engine-errors.js';
import type { LedgerStore } from './ports/ledger/ledger-store.js';
import { readRestoreHistory } from './restore-history.js';
import type { EngineParts, Effects } from './tree-engine.js';

/** The outcome of an effect. The result is JSON text, because an object could still change, or have no JSON. */
export type EffectOutcome =
  | { readonly status: 'done'; readonly json: string }
  | {
      readonly status: 'failed';
      readonly cause: ExecutionCause;
      readonly partial: string | null;
      /** What a tool says of its failure; absent if it says nothing. */
      readonly explanation?: string;
    }
  | { readonly status: 'unknown' };

/** Keeps the quota reservations of effects. */
interface ReservationTracker {
  onEffectRun(effect: Effect, result: EffectOutcome): void;
  clear(): void;
}

/** The answer to a request that is not about the sandbox. */
const NO_FACTS: SandboxFacts = { paths: [], usage: null };
const UNKNOWN_OUTCOME: EffectOutcome = { status: 'unknown' };

/**
 * Runs changes at one path in the order of their decisions (C82). Every effect gets an outcome: invalid facts become an
 * error at every path, which denies or fails the request; a throw or an invalid result becomes an unknown outcome,
 * because the effect may have happened.
 */
export class EffectRunner {
  readonly #effects: Effects;
  /** Effects in flight, with the paths that they change. */
  readonly #inFlight = new Map<Promise<unknown>, readonly string[]>();
  #isHalted = false;

  readonly #reservations: ReservationTracker | null;

  constructor(effects: Effects, reservations: ReservationTracker | null = null) {
    this.#effects = effects;
    this.#reservations = reservations;
  }

  gather({ case_id, paths, usage, portable_names }: GatherRequest): SandboxFacts {
    if (case_id === null || (paths.length === 0 && !usage)) return NO_FACTS;
    const facts = attempt(() => {
      const answer = copyOf(this.#effects.gather({ case_id, paths, usage, portable_names }));
      return isConforming(SandboxFacts, answer) ? answer : undefined;
    });
    return facts ?? { paths: paths.map(() => ({ status: 'error', cause: 'INTERNAL' })), usage: null };
  }

  /** Asks each decision point once, at the same time. One that throws, or answers anything else, gives no answer. */
  async ask({ decisions = [] }: GatherRequest): Promise<readonly DecisionFact[]> {
    const answers = Promise.all(decisions.map((query) => this.#askOne(query)));
    this.#inFlight.set(answers, []);
    const facts = await answers;
    this.#inFlight.delete(answers);
    return facts;
  }

  async #askOne(query: DecisionQuery): Promise<DecisionFact> {
    const none = toUnanswered(query);
    try {
      const { answer, cached } = await this.#effects.ask(query);
      const fact: DecisionFact = { ...none, answer, cached };
      return isConforming(DecisionFact, fact) ? fact : none;
    } catch {
      return none;
    }
  }

  run(effect: Effect, inCommit = false): EffectOutcome | Promise<EffectOutcome> {
    const start = (): EffectOutcome | Promise<EffectOutcome> =>
      this.#runGranted(effect, () => this.#effects.run(effect, inCommit));
    const earlier = inCommit || this.#inFlight.size === 0 ? [] : this.#findInFlightAtPaths(effect);
    if (earlier.length === 0) return start();
    // An effect that has not started when the engine fails stays an intent; the next start settles it.
    return this.#track(
      Promise.all(earlier).then(() => (this.#isHalted ? UNKNOWN_OUTCOME : start())),
      effect,
    );
  }

  /** Starts no effect that is still waiting for another one, until `startEpoch`. */
  halt(): void {
    this.#isHalted = true;
  }

  /** Starts a new epoch, with nothing in flight and nothing reserved. */
  startEpoch(): void {
    this.#isHalted = false;
    this.#reservations?.clear();
  }

  settle(effect: Effect): EffectOutcome | Promise<EffectOutcome> {
    return this.#runGranted(effect, () => this.#effects.settle(effect));
  }

  /** Resolves when no effect is in flight. */
  async waitUntilIdle(): Promise<void> {
    while (this.#inFlight.size > 0) await Promise.allSettled(this.#inFlight.keys());
  }

  /** The effect holds its capability only while it runs. */
  #runGranted(effect: Effect, work: () => unknown): EffectOutcome | Promise<EffectOutcome> {
    grantCapability(effect);
    const answer = attempt(work);
    if (attempt(() => answer instanceof Promise) !== true) {
      revokeCapability(effect);
      return this.#reportOutcome(effect, toOutcome(answer));
    }
    const pending = (answer as Promise<unknown>).then(toOutcome, () => UNKNOWN_OUTCOME);
    void pending.then((result) => {
      revokeCapability(effect);
      this.#reportOutcome(effect, result);
    });
    return this.#track(pending, effect);
  }

  #reportOutcome(effect: Effect, result: EffectOutcome): EffectOutcome {
    this.#reservations?.onEffectRun(effect, result);
    return result;
  }

  #track(pending: Promise<EffectOutcome>, effect: Effect): Promise<EffectOutcome> {
    this.#inFlight.set(
      pending,
      changedPaths(effect).map((path) => `${effect.case_id ?? ''} ${path}`),
    );
    void pending.then(() => this.#inFlight.delete(pending));
    return pending;
  }

  /** Effects in flight at one of its paths. They were decided earlier. */
  #findInFlightAtPaths(effect: Effect): readonly Promise<unknown>[] {
    const paths = changedPaths(effect).map((path) => `${effect.case_id ?? ''} ${path}`);
    return [...this.#inFlight].flatMap(([pending, others]) =>
      others.some((path) => paths.includes(path)) ? [pending] : [],
    );
  }
}

/**
 * Effects that are not executed while the ledger is suspended. The engine takes a throw for an unknown outcome, and for
 * facts that could not be gathered.
 */
export class SuspendableEffects implements Effects {
  readonly #effects: Effects;
  #isSuspended = true;

  constructor(effects: Effects) {
    this.#effects = effects;
  }

  get isSuspended(): boolean {
    return this.#isSuspended;
  }

  /** No timer may fire either: it may start an effect. */
  get isElsewhere(): boolean {
    return this.#isSuspended || this.#effects.isElsewhere;
  }

  /** Reads from the ledger whether it is suspended. @throws LedgerError: then it stays suspended */
  async readSuspension(store: Pick<LedgerStore, 'marks'>): Promise<void> {
    this.#isSuspended = true;
    this.#isSuspended = (await readRestoreHistory(store)).unacknowledged !== null;
  }

  gather(request: SandboxRequest): SandboxFacts {
    this.#refuseSuspended();
    return this.#effects.gather(request);
  }

  ask(query: DecisionQuery): Promise<DecisionReply> {
    this.#refuseSuspended();
    return this.#effects.ask(query);
  }

  run(effect: Effect, inCommit: boolean): EffectResult | Promise<EffectResult> {
    this.#refuseSuspended();
    return this.#effects.run(effect, inCommit);
  }

  settle(effect: Effect): EffectResult | Promise<EffectResult> {
    this.#refuseSuspended();
    return this.#effects.settle(effect);
  }

  /** While it is suspended, the outcome of every effect is unknown, also without its tool or table. */
  canRun(effect: Effect): boolean {
    return this.#isSuspended || this.#effects.canRun(effect);
  }

  forgetUsage(case_id: string): void {
    this.#effects.forgetUsage(case_id);
  }

  #refuseSuspended(): void {
    if (this.#isSuspended) throw executionSuspendedError();
  }
}

/** The parts of an engine whose effects can be suspended. */
export type SuspendableParts = Omit<EngineParts, 'effects'> & { readonly effects: SuspendableEffects };

export const withSuspension = (parts: EngineParts): SuspendableParts => ({
  ...parts,
  effects: new SuspendableEffects(parts.effects),
});

/** The record of a decision point that gave no answer. */
export const toUnanswered = ({ point: { name }, body }: DecisionQuery): DecisionFact => ({
  ...{ name, answer: 'none', request_hash: sha256(body), cached: false },
});

/** The embedding service may reuse the object, even for another tree in the same tick. */
const copyOf = ({ paths, usage }: SandboxFacts): SandboxFacts => ({
  paths: Array.from(paths, (fact) => ({ ...fact })),
  usage: usage === null ? null : { ...usage },
});

/** Treats anything that the work throws as no result. */
function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

const toOutcome = (answer: unknown): EffectOutcome => attempt(() => parseOutcome(answer)) ?? UNKNOWN_OUTCOME;

function parseOutcome(answer: unknown): EffectOutcome | undefined {
  if (!isJsonObject(answer)) return undefined;
  const { status, result, cause, partial, explanation } = answer;
  if (status === 'done') {
    const json = jsonOf(result);
    return json === null ? undefined : { status, json };
  }
  if (status !== 'failed' || typeof cause !== 'string' || !Object.hasOwn(EXECUTION_CAUSES, cause)) return undefined;
  const outcome = { status, cause: cause as ExecutionCause, partial: jsonOf(partial) } as const;
  const words = typeof explanation === 'string' ? toRecordedWords(explanation) : '';
  return words === '' ? outcome : { ...outcome, explanation: words };
}

/** Bounded, and without half a surrogate pair, which the ledger could not store. */
const toRecordedWords = (text: string): string => text.slice(0, TOOL_WORDS_CHARS_MAX).toWellFormed().trim();

/** The text of a JSON object, or null. `toJSON` may return anything, so the text is checked too. */
function jsonOf(value: unknown): string | null {
  const json: unknown = isJsonObject(value) ? JSON.stringify(value) : undefined;
  return typeof json === 'string' && json.startsWith('{') ? json : null;
}
