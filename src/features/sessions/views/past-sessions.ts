// Past states of sessions: after a given entry.

import { nameInLedger } from '../../../core/contract/entry-name.js';
import { artifactRef, isWithheld } from '../../../core/contract/artifact-ref.js';
import type { Course } from '../../../core/contract/inspection/inspection.js';
import type { PacketMaterial, SessionView, Packet } from '../../../interfaces/inspector/contract/session-view.js';
import { IssuedSteps } from '../issued-steps.js';
import { sessionOf } from '../tree/session-of.js';
import { LedgerError } from '../../../core/errors.js';
import { withheldContentError } from '../../../core/ledger/require-content.js';
import { TreeCourse } from '../../../kernel/replay/tree-course.js';
import type { Pause, ReadControl } from '../../../engine/ports/pace.js';
import { createLruMap } from '../../../system/lru-map.js';
import { foldUpTo, type CourseCache } from '../../../kernel/replay/course-cache.js';
import type { OpenSessionViews, ViewedSessions } from '../../../interfaces/inspector/added-views.js';
import { toArtifactInfo, type LedgerView } from '../../../interfaces/inspector/ledger-view.js';
import { entryAt } from '../../../interfaces/inspector/step-story.js';
import type { SpecPhase } from '../contract/session-spec.js';
import { activePhase, gateOf, isPhaseFinished, taskStatus } from '../rules/task-progress.js';
import type { SessionState } from '../rules/session-state.js';

/** Limit of the cache of past folds, from which later queries continue. */
const FOLDS_CACHED_MAX = 4;
/** Limit of packets in one view; for earlier packets, the view contains only when they were issued. */
export const PACKETS_MAX = 500;

interface PastFold {
  readonly tree: TreeCourse;
  readonly end: number;
}

export class PastSessions implements ViewedSessions {
  readonly #ledger: LedgerView;
  readonly #courses: CourseCache;
  readonly #pause: Pause;
  readonly #folds = createLruMap<PastFold>(FOLDS_CACHED_MAX);
  #turn: Promise<unknown> = Promise.resolve();

  constructor(ledger: LedgerView, courses: CourseCache, pause: Pause) {
    this.#ledger = ledger;
    this.#courses = courses;
    this.#pause = pause;
  }

  async view(session_id: string, at: number | null, control?: ReadControl): Promise<SessionView | null> {
    if (at === null) {
      const point = await this.#courses.refresh(session_id, control);
      return point === null ? null : this.#createView(point.tree, point.through - 1);
    }
    const turn = this.#turn.then(() => this.#foldAt(session_id, at + 1, control));
    this.#turn = turn.catch(() => undefined);
    const tree = await turn;
    return tree.next === 0 ? null : this.#createView(tree, at);
  }

  async #foldAt(session_id: string, end: number, control?: ReadControl): Promise<TreeCourse> {
    const known = this.#folds.get(session_id);
    const tree = known !== undefined && known.end <= end ? known.tree : new TreeCourse(session_id);
    this.#folds.delete(session_id);
    await foldUpTo(tree, { source: this.#ledger, pause: control?.pause ?? this.#pause }, end);
    if (tree.next > 0) this.#folds.set(session_id, { tree, end });
    return tree;
  }

  async #createView(tree: TreeCourse, at: number): Promise<SessionView | null> {
    if (tree.cut !== null) await this.#throwCut(tree.cut);
    const session = sessionOf(tree);
    if (session === null) return null;
    const issued = tree.follower instanceof IssuedSteps ? tree.follower.steps : [];
    const isTitled = await this.#isTitled(tree.tree_id);
    return createSessionView(session, at, { isTitled, ...(await this.#packets(issued)) });
  }

  /** The packets with the materials that may be shown; for the others, the hash. */
  async #packets(issued: IssuedSteps['steps']): Promise<Pick<SessionViewExtras, 'packets' | 'packets_before'>> {
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
    const entry = await entryAt(this.#ledger, log_index);
    const shown = entry === null ? [] : await this.#ledger.shownOf(entry);
    const found = shown.find((artifact) => artifactRef(artifact).hash_sha256 === sha256);
    return found === undefined ? null : { log_index, ...toArtifactInfo(found) };
  }

  /** Whether the spec may be shown. A cached fold may contain a spec that was erased since: it must not be shown. */
  async #isTitled(session_id: string): Promise<boolean> {
    for await (const opening of this.#ledger.tree(session_id)) {
      const shown = (await this.#ledger.shownOf(opening)).filter(isWithheld);
      const gone = shown.find(({ withheld }) => withheld === 'erased');
      if (gone !== undefined) throw withheldContentError(gone);
      return shown.length === 0;
    }
    return true;
  }

  async #throwCut({ log_index, why, needs }: NonNullable<Course['cut']>): Promise<never> {
    if (needs !== undefined) throw new LedgerError({ code: 'LEDGER_UNSUPPORTED', message: needs });
    const entry = why === 'withheld' ? await entryAt(this.#ledger, log_index) : null;
    const gone = entry === null ? undefined : (await this.#ledger.artifactsOf(entry)).find(isWithheld);
    if (gone !== undefined) throw withheldContentError(gone);
    const message = `the session does not fold at entry ${nameInLedger(log_index)}: run \`turnpike replay\` for the difference`;
    throw new LedgerError({ code: 'LEDGER_TAMPERED', message });
  }
}

export const openSessionViews: OpenSessionViews = (ledger, courses, pause) => new PastSessions(ledger, courses, pause);

/** The parts of a session view that are not in the session state. */
interface SessionViewExtras {
  readonly packets: readonly Packet[];
  readonly packets_before: number;
  /** Whether the texts of the spec may be shown. */
  readonly isTitled: boolean;
}

/** Creates the view of a session for the page. It contains no step proofs, and no text that an agent wrote. */
function createSessionView(state: SessionState, at: number, { isTitled, ...packets }: SessionViewExtras): SessionView {
  const { session_id, spec, status, pause_reason, failure_reason, settings, activation, steps_issued } = state;
  const active = activePhase(state);
  const { outstanding } = state;
  return {
    ...{ session_id, at, status, pause_reason, failure_reason, posture: settings.posture, activation, steps_issued },
    outstanding: outstanding && {
      step_id: outstanding.step.step_id,
      type: outstanding.type,
      task_id: outstanding.step.task_id,
    },
    phases: spec.phases.map((phase) => ({
      id: phase.id,
      title: isTitled ? phase.title : '',
      state: phase === active ? 'current' : isPhaseFinished(state, phase) ? 'done' : 'open',
      gate: gateViewOf(state, phase),
      tasks: phase.tasks.map(({ id, title }) => ({
        id,
        title: isTitled ? title : '',
        state: taskStatus(state, id),
      })),
    })),
    ...packets,
  };
}

function gateViewOf(state: SessionState, phase: SpecPhase): SessionView['phases'][number]['gate'] {
  if (phase.gate === undefined) return null;
  const { status, verdict, waiver } = gateOf(state, phase);
  const pendingText = state.ack?.phase_id === phase.id ? 'a person has to acknowledge it' : '';
  const decidedText =
    waiver === null ? (verdict === null ? '' : `verdict ${verdict}`) : `waived: ${waiver.reason_code}`;
  return { state: status, detail: pendingText === '' ? decidedText : pendingText };
}
