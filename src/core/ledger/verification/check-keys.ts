// Compares the key history of a log with the rotations that the log records. The history was checked before, as a chain
// (src/core/ledger/proof/key-history.ts); only the log shows that its end is missing.

import type { Entry } from '../../contract/run/entry.js';
import type { KeySource, LogHead } from '../readable-ledger.js';
import { rootOf } from '../proof/merkle.js';
import { readRotation, type KeyRotation } from '../proof/key-history.js';
import { WHOLE_LOG, type PlacedFinding, type ProblemPlace } from './ledger-problem.js';

interface RecordedRotation {
  readonly place: ProblemPlace;
  readonly number: number;
  readonly note: string;
}

export class KeyCheck {
  readonly #source: () => KeySource | null;
  readonly #rotations: readonly KeyRotation[];
  readonly #recorded: RecordedRotation[] = [];
  /** The roots of this log at the sizes of the rotations. */
  readonly #roots = new Map<number, string>();
  /** The smallest size at which a restore has cut the log. */
  #keptSize = Infinity;

  /** @param source is read again at the end, because a key may be rotated meanwhile */
  constructor(source: () => KeySource | null) {
    this.#source = source;
    this.#rotations = rotationsOf(source()?.notes ?? []);
  }

  take({ type, body, seq, tree_id }: Entry & { readonly tree_id: string }, log_index: number): void {
    if (type !== 'input') return;
    if (body.kind === 'restore') this.#keptSize = Math.min(this.#keptSize, body.kept.size);
    if (body.kind !== 'rotate_key' || body.rotation.purpose !== 'ledger') return;
    const { number, note } = body.rotation;
    this.#recorded.push({ place: { log_index, tree_id, seq }, number, note });
  }

  /** The log up to here. */
  takeHead({ size, frontier }: Pick<LogHead, 'size' | 'frontier'>): void {
    if (this.#rotations.some(({ head }) => head.size === size)) this.#roots.set(size, rootOf(frontier));
  }

  /** @param begin entries before it are in an archive */
  *finish(begin: number): Iterable<PlacedFinding> {
    const source = this.#source();
    if (source === null) return;
    const { notes, isUnfinished } = source;
    for (const { place, number, note } of this.#recorded) {
      if (notes[number - 1] === note) continue;
      const why = notes[number - 1] === undefined ? 'does not have it' : 'has another one';
      const message = `the log records rotation ${number} of its key, and the key history ${why}`;
      yield { place, finding: { rule: 'key.unknown', message } };
    }
    const recorded = new Set(this.#recorded.map(({ number }) => number));
    const rotations = rotationsOf(notes);
    for (const { number, head } of rotations) {
      const isPending = isUnfinished && number === rotations.length;
      if (!recorded.has(number) && !isPending && head.size >= begin) {
        const message = `the key history has rotation ${number} at size ${head.size}, and the log does not record it`;
        yield { place: WHOLE_LOG, finding: { rule: 'key.unrecorded', message } };
      }
      const root = this.#roots.get(head.size) ?? head.root;
      // A restore has replaced the entries after the ones that it kept.
      if (root === head.root || head.size > this.#keptSize) continue;
      const message = `rotation ${number} of the key vouches for another log at size ${head.size}`;
      yield { place: WHOLE_LOG, finding: { rule: 'key.differs', message } };
    }
  }
}

const rotationsOf = (notes: readonly string[]): readonly KeyRotation[] =>
  notes.map((note) => readRotation(note)?.rotation).filter((rotation) => rotation !== undefined);
