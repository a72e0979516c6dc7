// The hands of an engine, which are somebody's code: what they answer is not believed to have the shape it should have.

import { SandboxFacts, type Effect, type GatherRequest } from '../contract/effect.js';
import { EXECUTION_CAUSES, type ExecutionCause } from '../contract/fault.js';
import { isJsonObject } from '../contract/json.js';
import { conforms } from '../contract/validators.js';
import { changedPaths } from './case-reservations.js';
import { grant, revoke } from '../ports/capability.js';
import type { Effects } from './tree-engine.js';

/** What became of an effect. What it gave is text from here on: an object could still change, or have no text. */
export type Performed =
  | { readonly status: 'done'; readonly json: string }
  | { readonly status: 'failed'; readonly cause: ExecutionCause; readonly partial: string | null }
  | { readonly status: 'unknown' };

/** What has reserved room for effects. */
interface Reserving {
  performed(effect: Effect, result: Performed): void;
  clear(): void;
}

const UNKNOWN: Performed = { status: 'unknown' };

/**
 * Changes at one path are made in the order in which they come, which is that of their decisions (C82). An answer for
 * everything: facts that are none are an error at every path, which denies or fails; a throw, or an
 * answer that is no result, is an unknown outcome, since nobody can tell whether the effect happened.
 */
export class Hands {
  readonly #effects: Effects;
  /** What is under way, with the paths that it changes. */
  readonly #busy = new Map<Promise<unknown>, readonly string[]>();
  #isHalted = false;

  readonly #reservations: Reserving | null;

  constructor(effects: Effects, reservations: Reserving | null = null) {
    this.#effects = effects;
    this.#reservations = reservations;
  }

  gather(request: GatherRequest): SandboxFacts {
    const facts = attempt(() => {
      const answer = copyOf(this.#effects.gather(request));
      return conforms(SandboxFacts, answer) ? answer : undefined;
    });
    return facts ?? { paths: request.paths.map(() => ({ status: 'error', cause: 'INTERNAL' })), usage: null };
  }

  perform(effect: Effect, inCommit = false): Performed | Promise<Performed> {
    const start = (): Performed | Promise<Performed> =>
      this.#believe(effect, () => this.#effects.perform(effect, inCommit));
    const earlier = inCommit || this.#busy.size === 0 ? [] : this.#sharingPath(effect);
    if (earlier.length === 0) return start();
    // What is not begun when the engine fails stays an intent, and is settled by the next start.
    return this.#track(
      Promise.all(earlier).then(() => (this.#isHalted ? UNKNOWN : start())),
      effect,
    );
  }

  /** From now on nothing is begun that waits for another effect; `begin` ends that. */
  halt(): void {
    this.#isHalted = true;
  }

  /** A new epoch: nothing is under way, and nothing is reserved yet. */
  begin(): void {
    this.#isHalted = false;
    this.#reservations?.clear();
  }

  settle(effect: Effect): Performed | Promise<Performed> {
    return this.#believe(effect, () => this.#effects.settle(effect));
  }

  /** When nothing that was begun is under way any more. */
  async idle(): Promise<void> {
    while (this.#busy.size > 0) await Promise.allSettled(this.#busy.keys());
  }

  /** The effect is granted while it is under way, and not a moment longer. */
  #believe(effect: Effect, work: () => unknown): Performed | Promise<Performed> {
    grant(effect);
    const answer = attempt(work);
    if (attempt(() => answer instanceof Promise) !== true) {
      revoke(effect);
      return this.#noted(effect, performed(answer));
    }
    const late = (answer as Promise<unknown>).then(performed, () => UNKNOWN);
    void late.then((result) => {
      revoke(effect);
      this.#noted(effect, result);
    });
    return this.#track(late, effect);
  }

  #noted(effect: Effect, result: Performed): Performed {
    this.#reservations?.performed(effect, result);
    return result;
  }

  #track(late: Promise<Performed>, effect: Effect): Promise<Performed> {
    this.#busy.set(
      late,
      changedPaths(effect).map((path) => `${effect.case_id ?? ''} ${path}`),
    );
    void late.then(() => this.#busy.delete(late));
    return late;
  }

  /** Effects that are under way at one of its paths: they were decided before it. */
  #sharingPath(effect: Effect): readonly Promise<unknown>[] {
    const paths = changedPaths(effect).map((path) => `${effect.case_id ?? ''} ${path}`);
    return [...this.#busy].flatMap(([late, others]) => (others.some((path) => paths.includes(path)) ? [late] : []));
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

const performed = (answer: unknown): Performed => attempt(() => asPerformed(answer)) ?? UNKNOWN;

function asPerformed(answer: unknown): Performed | undefined {
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
