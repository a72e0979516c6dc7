// The metrics of the engine. Labels are names of the catalogue, outcomes, rules and kinds: never what a caller sends.

import { RULE_IDS } from '../../core/policy/verdict.js';
import type { Attributes, Measure, Meter } from '../../engine/ports/telemetry.js';

const MS_PER_SECOND = 1_000;
/** In seconds: from a step that waits for no disk to one that waits for another service. */
const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Rules whose ids end with a name of the policy. They are counted together. */
const STEMS = RULE_IDS.filter((rule) => rule.endsWith('<field>')).map((rule) => rule.replace('<field>', ''));
const RULE_CHARS_MAX = 80;
const RULE = /^[a-z][a-z_.]*$/;

/** The rule as a label. */
export function ruleLabel(rule_id: string | null): string {
  if (rule_id === null) return 'none';
  const stem = STEMS.find((known) => rule_id.startsWith(known));
  if (stem !== undefined) return stem.slice(0, -1);
  return RULE.test(rule_id) && rule_id.length <= RULE_CHARS_MAX ? rule_id : 'other';
}

export interface EngineMetrics {
  step(ms: number, action: string, outcome: string): void;
  effect(ms: number, action: string, status: string): void;
  queueWait(ms: number): void;
  commit(ms: number, entries: number, bytes: number): void;
  fold(ms: number): void;
  denial(rule_id: string | null): void;
  runEnded(kind: string, state: string): void;
}

export function createEngineMetrics(meter: Meter): EngineMetrics {
  const seconds = (name: string, description: string): Measure =>
    meter.histogram(`turnpike_${name}_duration_seconds`, { description, unit: 's', boundaries: SECONDS });
  const count = (name: string, description: string, unit?: string): Measure =>
    meter.counter(`turnpike_${name}_total`, { description, ...(unit === undefined ? {} : { unit }) });
  const step = seconds('step', 'Time from the submission of a proposal to its durable outcome, by action and outcome');
  const effect = seconds('effect', 'Time of an effect, by action and status');
  const queue = seconds('queue_wait', 'Time for which an input waits until the engine decides it');
  const commit = seconds('commit', 'Time of a commit');
  const fold = seconds('fold', 'Time to fold run trees into memory');
  const denials = count('denials', 'Steps and runs that policy denied, by rule');
  const runs = count('runs_ended', 'Agent runs, promotions, exports and sessions that ended, by kind and state');
  const entries = count('log_entries', 'Entries that this process has committed');
  const bytes = count('log_bytes', 'Characters of the entries that this process has committed', 'By');
  const stepAttributes = new AttributeCache('action', 'outcome');
  const effectAttributes = new AttributeCache('action', 'status');
  return {
    step: (ms, action, outcome) => step(ms / MS_PER_SECOND, stepAttributes.get(action, outcome)),
    effect: (ms, action, status) => effect(ms / MS_PER_SECOND, effectAttributes.get(action, status)),
    queueWait: (ms) => queue(ms / MS_PER_SECOND),
    commit: (ms, count, size) => {
      commit(ms / MS_PER_SECOND);
      entries(count);
      bytes(size);
    },
    fold: (ms) => fold(ms / MS_PER_SECOND),
    denial: (rule_id) => denials(1, { rule: ruleLabel(rule_id) }),
    runEnded: (kind, state) => runs(1, { kind, state }),
  };
}

/** The same object for the same values of two labels, which are few. */
class AttributeCache {
  readonly #names: readonly [first: string, second: string];
  readonly #known = new Map<string, Map<string, Attributes>>();
  /** The last values, and their object: most are the same again. */
  #first = '';
  #second = '';
  #last: Attributes | null = null;

  constructor(first: string, second: string) {
    this.#names = [first, second];
  }

  get(first: string, second: string): Attributes {
    if (this.#last !== null && first === this.#first && second === this.#second) return this.#last;
    this.#first = first;
    this.#second = second;
    this.#last = this.#find(first, second);
    return this.#last;
  }

  #find(first: string, second: string): Attributes {
    const inner = this.#known.get(first) ?? new Map<string, Attributes>();
    this.#known.set(first, inner);
    const [firstName, secondName] = this.#names;
    const found = inner.get(second) ?? { [firstName]: first, [secondName]: second };
    inner.set(second, found);
    return found;
  }
}
