// The executor under test: the real file sandbox, with a journal around every change. One kind of change is not made by
// the sandbox: a write to `/sandbox/outbox-*` is sent, once, to a place that cannot be queried afterwards.

import { linkSync, lstatSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { TEMP_PREFIX } from '../../src/sandbox/files/sandbox-walk.js';
import type { Effect, EffectResult, SandboxRequest, SandboxFacts } from '../../src/core/contract/run/effect.js';
import { sha256 } from '../../src/core/contract/hash.js';
import type { Sandbox } from '../../src/engine/ports/effects/sandbox.js';
import type { Hooks } from './fault-points.js';
import { append, type Places } from './journal.js';

const READS = ['READ_FILE', 'LIST_FILES'];
const isSent = (path: unknown): boolean => typeof path === 'string' && path.startsWith('/sandbox/outbox-');
const isOutbox = ({ action, args }: Effect): boolean => action === 'WRITE_FILE' && isSent(args['path']);

/** Planted faults of the executor. */
export type Planted = 'none' | 'ack-before-commit' | 'effect-twice' | 'settle-performs' | 'settle-guesses';

interface JournalledOptions {
  readonly sandbox: Sandbox;
  /** The folder of the sandbox, for checks from outside. */
  readonly root: string;
  readonly places: Places;
  readonly hooks: Hooks;
  readonly planted?: Planted;
}

export class JournalledSandbox implements Sandbox {
  readonly #options: JournalledOptions;

  constructor(options: JournalledOptions) {
    this.#options = options;
  }

  gather(request: SandboxRequest): SandboxFacts {
    return this.#options.sandbox.gather(request);
  }

  perform(effect: Effect): EffectResult {
    if (READS.includes(effect.action)) return this.#options.sandbox.perform(effect);
    if (this.#options.planted === 'effect-twice') this.#change(effect);
    return this.#change(effect);
  }

  settle(effect: Effect): EffectResult {
    const { places, hooks, planted } = this.#options;
    hooks.pass('settle.before');
    const before = this.#look(effect.case_id ?? '');
    const { status, ...rest } = this.#settled(effect);
    const changed = differences(before, this.#look(effect.case_id ?? ''));
    if (planted !== 'settle-performs') {
      append(places.journal, { at: 'settled', key: effect.idempotency_key, action: effect.action, status, changed });
    }
    hooks.pass('settle.after');
    return { status, ...rest } as EffectResult;
  }

  #settled(effect: Effect): EffectResult {
    const { sandbox, planted } = this.#options;
    if (planted === 'settle-performs') return this.#change(effect);
    if (!isOutbox(effect)) return sandbox.settle(effect);
    return planted === 'settle-guesses' ? { status: 'done', result: {} } : { status: 'unknown' };
  }

  #change(effect: Effect): EffectResult {
    const { sandbox, places, hooks } = this.#options;
    const { idempotency_key: key, action, case_id, args } = effect;
    hooks.pass('effect.before');
    append(places.journal, { at: 'begin', key, action, case_id, args });
    if (hooks.isDue('effect.mid')) this.#half(effect);
    hooks.pass('effect.mid');
    const result = isOutbox(effect) ? this.#send(effect) : sandbox.perform(effect);
    hooks.pass('effect.performed');
    append(places.journal, { at: 'done', key, status: result.status });
    hooks.pass('effect.after');
    return result;
  }

  #send({ idempotency_key: key, args }: Effect): EffectResult {
    append(this.#options.places.outbox, { key, content: args['content'] });
    return { status: 'done', result: {} };
  }

  /** Makes the changes of a process that dies in the middle of this effect, just before it dies. */
  #half({ action, args, case_id, idempotency_key }: Effect): void {
    const at = (path: unknown): string =>
      join(this.#options.root, case_id ?? '', String(path).slice('/sandbox/'.length));
    if (action === 'RENAME_FILE' && isFree(at(args['destination'])) && !isFree(at(args['source']))) {
      linkSync(at(args['source']), at(args['destination']));
    }
    if (action !== 'WRITE_FILE' || isSent(args['path'])) return;
    writeFileSync(join(dirname(at(args['path'])), `${TEMP_PREFIX}${sha256(idempotency_key)}`), 'ha');
  }

  #look(case_id: string): ReadonlyMap<string, string> {
    return look(join(this.#options.root, case_id));
  }
}

const isFree = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) === undefined;

/** Every name below a folder, with what distinguishes one object from another. */
function look(folder: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const visit = (path: string): void => {
    for (const name of readdirSync(join(folder, path))) {
      const each = join(path, name);
      const stats = lstatSync(join(folder, each), { bigint: true });
      // The time of a directory changes with its content.
      found.set(each, stats.isDirectory() ? `dir ${stats.ino}` : `${stats.ino} ${stats.size} ${stats.mtimeNs}`);
      if (stats.isDirectory()) visit(each);
    }
  };
  if (!isFree(folder)) visit('');
  return found;
}

function differences(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): readonly string[] {
  const gone = [...before.keys()].filter((path) => !after.has(path)).map((path) => `-${path}`);
  const now = [...after].filter(([path, what]) => before.get(path) !== what);
  return [...gone, ...now.map(([path]) => (before.has(path) ? `~${path}` : `+${path}`))];
}
