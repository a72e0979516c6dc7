// The hands of an engine, which are somebody's code: what they answer is not believed to have the shape it should have.

import { SandboxFacts, type Effect, type GatherRequest } from '../contract/run/effect.js';
import { EXECUTION_CAUSES, type ExecutionCause } from '../contract/fault.js';
import { isJsonObject } from '../contract/json.js';
import { isConforming } from '../contract/validators.js';
import { changedPaths } from './reservations/case-reservations.js';
import { grantCapability, revokeCapability } from '../ports/effects/capability.js';
import type { Effects } from './tree-engine.js';

/** What became of an effect. What it gave is text from here on: an object could still change, or have no text. */
export type EffectOutcome =
  | { readonly status: 'done'; readonly json: string }
  | { readonly status: 'failed'; readonly cause: ExecutionCause; readonly partial: string | null }
  | { readonly status: 'unknown' };

/** What has reserved room for effects. */
interface ReservationTracker {
  onEffectRun(effect: Effect, result: EffectOutcome): void;
  clear(): void;
}

const UNKNOWN_OUTCOME: EffectOutcome = { status: 'unknown' };

/**
 * Changes at one path are made in the order in which they come, which is that of their decisions (C82). An answer for
 * everything: facts that are none are an error at every path, which denies or fails; a throw, or an
 * answer that is no result, is an unknown outcome, since nobody can tell whether the effect happened.
 */
export class EffectRunner {
  readonly #effects: Effects;
  /** What is under way, with the paths that it changes. */
  readonly #inFlight = new Map<Promise<unknown>, readonly string[]>();
  #isHalted = false;

  readonly #reservations: ReservationTracker | null;

  constructor(effects: Effects, reservations: ReservationTracker | null = null) {
    this.#effects = effects;
    this.#reservations = reservations;
  }

  gather(request: GatherRequest): SandboxFacts {
    const facts = attempt(() => {
      const answer = copyOf(this.#effects.gather(request));
      return isConforming(SandboxFacts, answer) ? answer : undefined;
    });
    return facts ?? { paths: request.paths.map(() => ({ status: 'error', cause: 'INTERNAL' })), usage: null };
  }

  run(effect: Effect, inCommit = false): EffectOutcome | Promise<EffectOutcome> {
    const start = (): EffectOutcome | Promise<EffectOutcome> =>
      this.#runGranted(effect, () => this.#effects.run(effect, inCommit));
    const earlier = inCommit || this.#inFlight.size === 0 ? [] : this.#findInFlightAtPaths(effect);
    if (earlier.length === 0) return start();
    // What is not begun when the engine fails stays an intent, and is settled by the next start.
    return this.#track(
      Promise.all(earlier).then(() => (this.#isHalted ? UNKNOWN_OUTCOME : start())),
      effect,
    );
  }

  /** From now on nothing is begun that waits for another effect; `begin` ends that. */
  halt(): void {
    this.#isHalted = true;
  }

  /** A new epoch: nothing is under way, and nothing is reserved yet. */
  startEpoch(): void {
    this.#isHalted = false;
    this.#reservations?.clear();
  }

  settle(effect: Effect): EffectOutcome | Promise<EffectOutcome> {
    return this.#runGranted(effect, () => this.#effects.settle(effect));
  }

  /** When nothing that was begun is under way any more. */
  async waitUntilIdle(): Promise<void> {
    while (this.#inFlight.size > 0) await Promise.allSettled(this.#inFlight.keys());
  }

  /** The effect is granted while it is under way, and not a moment longer. */
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

  /** Effects that are under way at one of its paths: they were decided before it. */
  #findInFlightAtPaths(effect: Effect): readonly Promise<unknown>[] {
    const paths = changedPaths(effect).map((path) => `${effect.case_id ?? ''} ${path}`);
    return [...this.#inFlight].flatMap(([pending, others]) =>
      others.some((path) => paths.includes(path)) ? [pending] : [],
    );
  }
}

/** Whoever answered may use the object again, for another tree of the same tick even. */
const copyOf = ({ paths, usage }: SandboxFacts): SandboxFacts => ({
  paths: Array.from(paths, (fact) => ({ ...fact })),
  usage: usage === null ? null : { ...usage },
});

/** Anything that the work throws counts as no answer. */
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
  const { status, result, cause, partial } = answer;
  if (status === 'done') {
    const json = jsonOf(result);
    return json === null ? undefined : { status, json };
  }
  if (status !== 'failed' || typeof cause !== 'string' || !Object.hasOwn(EXECUTION_CAUSES, cause)) return undefined;
  return { status, cause: cause as ExecutionCause, partial: jsonOf(partial) };
}

/** The text of a JSON object, or null. What `toJSON` makes of one may be anything. */
function jsonOf(value: unknown): string | null {
  const json: unknown = isJsonObject(value) ? JSON.stringify(value) : undefined;
  return typeof json === 'string' && json.startsWith('{') ? json : null;
}
