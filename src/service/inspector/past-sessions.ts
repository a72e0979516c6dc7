// Sessions as they stood when an entry had been written.

import { artifactRef, isWithheld } from '../../contract/artifact-ref.js';
import type { Course, PacketMaterial, SessionView } from '../../contract/inspection.js';
import { LedgerError } from '../../errors.js';
import { notToBeHad } from '../../ledger/withheld.js';
import { TreeCourse } from '../../replay/course.js';
import type { ReadControl } from '../../ports/pace.js';
import { takeUpTo, type Courses } from '../../replay/courses.js';
import { artifactInfo, type LookedAt } from './looked-at.js';
import { sessionView, type SessionTold } from './session-view.js';
import { entryAt } from './step-story.js';

/** Folds that stand in the past: whoever goes on from there need not begin anew. */
const FOLDS_KEPT = 4;
/** Packets that are told at once; those before are told of the moments at which they were handed out. */
export const PACKETS_MAX = 500;

interface PastFold {
  readonly tree: TreeCourse;
  readonly end: number;
}

export class PastSessions {
  readonly #looked: LookedAt;
  readonly #courses: Courses;
  readonly #pause: () => Promise<void> | undefined;
  readonly #folds = new Map<string, PastFold>();
  #turn: Promise<unknown> = Promise.resolve();

  constructor(looked: LookedAt, courses: Courses, pause: () => Promise<void> | undefined) {
    this.#looked = looked;
    this.#courses = courses;
    this.#pause = pause;
  }

  /** @throws LedgerError LEDGER_ERASED, LEDGER_TAMPERED where the session cannot be folded so far, LEDGER_ARCHIVED */
  async view(session_id: string, at: number | null, control?: ReadControl): Promise<SessionView | null> {
    if (at === null) {
      const reached = await this.#courses.reach(session_id, control);
      return reached === null ? null : this.#viewed(reached.tree, reached.through - 1);
    }
    const turn = this.#turn.then(() => this.#past(session_id, at + 1, control));
    this.#turn = turn.catch(() => undefined);
    const tree = await turn;
    return tree.next === 0 ? null : this.#viewed(tree, at);
  }

  async #past(session_id: string, end: number, control?: ReadControl): Promise<TreeCourse> {
    const known = this.#folds.get(session_id);
    const tree = known !== undefined && known.end <= end ? known.tree : new TreeCourse(session_id);
    this.#folds.delete(session_id);
    await takeUpTo(tree, { source: this.#looked, pause: control?.pause ?? this.#pause }, end);
    if (tree.next > 0) this.#folds.set(session_id, { tree, end });
    for (const oldest of this.#folds.keys()) {
      if (this.#folds.size <= FOLDS_KEPT) break;
      this.#folds.delete(oldest);
    }
    return tree;
  }

  async #viewed(tree: TreeCourse, at: number): Promise<SessionView | null> {
    if (tree.cut !== null) await this.#refuse(tree.cut);
    const { session } = tree;
    if (session === null) return null;
    const titled = await this.#isTitled(tree.tree_id);
    return sessionView(session, at, { titled, ...(await this.#packets(tree.issued)) });
  }

  /** With what of the materials may be shown: of the rest there is a hash. */
  async #packets(issued: TreeCourse['issued']): Promise<Pick<SessionTold, 'packets' | 'packets_before'>> {
    const last = issued.slice(-PACKETS_MAX);
    const known = new Map<string, PacketMaterial | null>();
    for (const material of last.flatMap(({ materials }) => materials)) {
      const key = `${material.log_index}/${material.sha256}`;
      if (!known.has(key)) known.set(key, await this.#material(material));
    }
    const packets = last.map(({ materials, ...step }) => ({
      ...step,
      materials: materials.flatMap(({ log_index, sha256 }) => known.get(`${log_index}/${sha256}`) ?? []),
    }));
    return { packets, packets_before: issued.length - last.length };
  }

  async #material({ log_index, sha256 }: { log_index: number; sha256: string }): Promise<PacketMaterial | null> {
    const entry = await entryAt(this.#looked, log_index);
    const shown = entry === null ? [] : await this.#looked.shownOf(entry);
    const found = shown.find((artifact) => artifactRef(artifact).hash_sha256 === sha256);
    return found === undefined ? null : { log_index, ...artifactInfo(found) };
  }

  /** Whether its spec may be shown. What was folded before may have been erased since: it is not told any more. */
  async #isTitled(session_id: string): Promise<boolean> {
    for await (const opening of this.#looked.tree(session_id)) {
      const shown = (await this.#looked.shownOf(opening)).filter(isWithheld);
      const gone = shown.find(({ withheld }) => withheld === 'erased');
      if (gone !== undefined) throw notToBeHad(gone);
      return shown.length === 0;
    }
    return true;
  }

  async #refuse({ log_index, why }: NonNullable<Course['cut']>): Promise<never> {
    const entry = why === 'withheld' ? await entryAt(this.#looked, log_index) : null;
    const gone = entry === null ? undefined : (await this.#looked.artifactsOf(entry)).find(isWithheld);
    if (gone !== undefined) throw notToBeHad(gone);
    const message = `the session does not fold at entry ${log_index}: run \`turnpike replay\` for the difference`;
    throw new LedgerError({ code: 'LEDGER_TAMPERED', message });
  }
}
