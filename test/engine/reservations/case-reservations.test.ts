// Reservations against a model that makes the decided changes in any order, except that changes at one path keep the
// order of their decisions: the counted amount is never less than the result (Q1 of shared-reservations.ts).

import { describe, expect, test } from '@jest/globals';
import type { PathFact } from '../../../src/core/contract/run/effect.js';
import type { JsonObject } from '../../../src/core/contract/json.js';
import { CaseReservations, type SandboxChange } from '../../../src/engine/reservations/quota-reservations.js';
import { changedPaths } from '../../../src/core/contract/policy/catalogue.js';
import { Random } from '../../simulation/random.js';

const CASE = 'case-1';
const BYTES_MAX = 100;
const FILES_MAX = 3;
const PATHS = ['/sandbox/a.txt', '/sandbox/b.txt', '/sandbox/c.txt', '/sandbox/d.txt'];

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
const fileFact = (bytes: number): PathFact => ({ status: 'file', bytes, inode: '1', mtime_ns: '1' });

interface Options {
  readonly seed: number;
  /** A deliberate mistake. */
  readonly plant?: 'none reserved' | 'released early' | 'always net' | 'in no order';
}

/** Files of one case, and changes that are decided but not made. */
class Model {
  readonly files = new Map<string, number>();
  readonly pending: SandboxChange[] = [];
  readonly reservations = new CaseReservations();
  readonly random: Random;
  readonly #plant: Options['plant'];
  #keys = 0;

  constructor({ seed, plant }: Options) {
    this.random = new Random(`reservations/${seed}`);
    this.#plant = plant;
  }

  get bytes(): number {
    return [...this.files.values()].reduce((sum, bytes) => sum + bytes, 0);
  }

  /** Decides by the rule of AUTHORIZE, with the reserved amount. */
  decide(): void {
    const [action, args] = this.#draw();
    const paths = [args['path'] ?? args['source'], args['destination']].flatMap((path) =>
      typeof path === 'string' ? [path] : [],
    );
    const facts = {
      paths: paths.map((path) => this.#fact(path)),
      usage: { bytes: this.bytes, files: this.files.size },
    };
    const { bytes, files } = this.reservations.computeReserved(
      { case_id: CASE, paths, usage: true, portable_names: false },
      facts,
    );
    if (action === 'WRITE_FILE') {
      const [fact] = facts.paths;
      const there = fact?.status === 'file' ? fact.bytes : null;
      const after = facts.usage.bytes + bytes - (there ?? 0) + textOf(args['content']).length;
      if (after > BYTES_MAX || facts.usage.files + files + (there === null ? 1 : 0) > FILES_MAX) return;
    }
    this.#keys += 1;
    const change = { action, args, before: facts.paths, case_id: CASE, idempotency_key: `run_x.1.${this.#keys}` };
    if (this.#plant !== 'none reserved')
      this.reservations.reserve(this.#plant === 'always net' ? alone(change) : change);
    this.pending.push(change);
    if (this.#plant === 'released early' && this.random.chance(0.3)) this.reservations.release(change.idempotency_key);
  }

  /** Makes one of the pending changes. */
  make(): void {
    if (this.pending.length === 0) return;
    const drawn = this.random.below(this.pending.length);
    const [change] = this.pending.splice(this.#plant === 'in no order' ? drawn : this.#firstAtPath(drawn), 1);
    if (change === undefined) return;
    this.#make(change);
    this.reservations.release(change.idempotency_key);
  }

  /** The index of the first change that must be made before the drawn one, or of that one. */
  #firstAtPath(drawn: number): number {
    const paths = changedPaths(this.pending[drawn]!);
    const earlier = this.pending
      .slice(0, drawn)
      .findIndex((change) => changedPaths(change).some((path) => paths.includes(path)));
    return earlier === -1 ? drawn : this.#firstAtPath(earlier);
  }

  #make({ action, args }: SandboxChange): void {
    const at = textOf(args['path'] ?? args['source']);
    if (action === 'WRITE_FILE') this.files.set(at, textOf(args['content']).length);
    if (action === 'DELETE_FILE') this.files.delete(at);
    const [bytes, to] = [this.files.get(at), textOf(args['destination'])];
    if (action !== 'RENAME_FILE' || bytes === undefined || this.files.has(to)) return;
    this.files.delete(at);
    this.files.set(to, bytes);
  }

  #draw(): readonly [string, JsonObject] {
    const path = this.random.pick(PATHS);
    const action = this.random.weighted({ WRITE_FILE: 6, DELETE_FILE: 2, RENAME_FILE: 2 });
    if (action === 'RENAME_FILE') return [action, { source: path, destination: this.random.pick(PATHS) }];
    return [action, action === 'DELETE_FILE' ? { path } : { path, content: 'x'.repeat(1 + this.random.below(60)) }];
  }

  #fact(path: string): PathFact {
    const bytes = this.files.get(path);
    return bytes === undefined ? { status: 'absent' } : fileFact(bytes);
  }
}

/** The change as if no other change affected its path. */
const alone = (change: SandboxChange): SandboxChange =>
  change.action === 'WRITE_FILE' ? { ...change, args: { ...change.args, path: change.idempotency_key } } : change;

/** @returns the step at which the sandbox exceeded its quota, or null */
function firstOverrun(options: Options, steps = 400): number | null {
  const model = new Model(options);
  for (let step = 0; step < steps; step += 1) {
    if (model.random.chance(0.55)) model.decide();
    else model.make();
    if (model.bytes > BYTES_MAX || model.files.size > FILES_MAX) return step;
  }
  while (model.pending.length > 0) model.make();
  expect(model.reservations.size).toBe(0);
  return null;
}

const SEEDS = Array.from({ length: 40 }, (_, seed) => seed);

describe('S0-50 C82: changes that are decided and made in any order', () => {
  test('never exceed the quota', () => {
    expect(SEEDS.map((seed) => firstOverrun({ seed })).filter((step) => step !== null)).toEqual([]);
  });

  test.each(['none reserved', 'released early', 'always net', 'in no order'] as const)(
    'exceed it, and are detected, with %s',
    (plant) => {
      expect(SEEDS.some((seed) => firstOverrun({ seed, plant }) !== null)).toBe(true);
    },
  );
});

const change = (key: string, action: string, args: JsonObject, before: PathFact): SandboxChange => ({
  action,
  args,
  before: [before],
  case_id: CASE,
  idempotency_key: key,
});
const ABSENT: PathFact = { status: 'absent' };
const request = { case_id: CASE, paths: ['/sandbox/z.txt'], usage: true, portable_names: false };
const nothing = { paths: [ABSENT], usage: { bytes: 0, files: 0 } };

describe('reservations', () => {
  test('count a new file whole, an overwrite by its growth, a directory as one, a delete as nothing', () => {
    const book = new CaseReservations();
    book.reserve(change('t.1.1', 'WRITE_FILE', { path: '/sandbox/a.txt', content: 'ééé' }, ABSENT));
    expect(book.computeReserved(request, nothing)).toEqual({ bytes: 6, files: 1 });
    book.reserve(change('t.1.2', 'WRITE_FILE', { path: '/sandbox/b.txt', content: 'x'.repeat(9) }, fileFact(5)));
    book.reserve(change('t.1.3', 'CREATE_DIRECTORY', { path: '/sandbox/d/' }, ABSENT));
    book.reserve(change('t.1.4', 'DELETE_FILE', { path: '/sandbox/e.txt' }, fileFact(5)));
    expect(book.computeReserved(request, nothing)).toEqual({ bytes: 10, files: 2 });
    expect(book.computeReserved({ ...request, case_id: 'case-2' }, nothing)).toEqual({ bytes: 0, files: 0 });
  });

  test('count no read, nothing without a case, and the same change once', () => {
    const book = new CaseReservations();
    const made = change('t.1.1', 'WRITE_FILE', { path: '/sandbox/a.txt', content: 'x' }, ABSENT);
    expect(book.reserve(change('t.1.9', 'READ_FILE', { path: '/sandbox/a.txt' }, fileFact(1)))).toBe(false);
    expect(book.reserve({ ...made, case_id: null })).toBe(false);
    expect([book.reserve(made), book.reserve(made), book.size]).toEqual([true, false, 1]);
  });

  test('are released one by one, by the step of an agent run, or all', () => {
    const book = new CaseReservations();
    for (const key of ['t.1.1', 't.1.2.1', 't.11.1', 'u.1.1']) {
      book.reserve(change(key, 'WRITE_FILE', { path: `/sandbox/${key}.txt`, content: 'x' }, ABSENT));
    }
    book.releaseStep('t.1');
    expect(book.size).toBe(2);
    book.release('t.11.1');
    book.release('t.11.1');
    expect(book.computeReserved(request, nothing)).toEqual({ bytes: 1, files: 1 });
    book.clear();
    expect(book.computeReserved(request, nothing)).toEqual({ bytes: 0, files: 0 });
  });
});
