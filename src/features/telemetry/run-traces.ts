// The traces of run trees in this process: one for each tree, and in it the place of every run and step.
//
//   V1. A tree belongs to the trace of the request that opened it. Without one, its trace id follows from its id, so
//       every process continues the same trace.
//   V2. The trace of a tree is not recorded in the ledger. A process that has not opened the tree takes it from the
//       first request with a trace context, else from the id of the tree.
//   V3. A step follows its request if that belongs to the trace of the tree. If not, it follows its run and has a link
//       to its request.
//   V4. Whether a tree is recorded depends on its id and the share alone, unless the caller records its own trace.
//   V5. A trace context decides nothing, and nothing of it is recorded.

import {
  isInRatio,
  parseTraceCarrier,
  spanIdOf,
  traceIdOf,
  type TraceCarrier,
  type TracePoint,
} from '../../core/contract/trace-context.js';
import type { OpenSpan, SpanOutcome, SpanStart, Tracer } from '../../engine/ports/telemetry.js';
import { rootRunIdOf } from '../../core/contract/run/run-context.js';

/** Trees whose traces are known. One that is forgotten continues as after a restart. */
const TREES_MAX = 16_384;

interface TreeTrace {
  readonly traceId: string;
  /** The request that opened the tree; null for a trace of its own. */
  readonly parent: TracePoint | null;
  readonly sampled: boolean;
  /** The parent of spans that belong to no run. */
  readonly root: TracePoint;
  readonly runs: Map<string, OpenSpan>;
}

/** The span of a run, which the tree places. */
export type RunSpan = Pick<SpanStart, 'name' | 'startMs' | 'attributes'>;

/** The parent of the span of a step, and the request if that has another trace. */
export interface StepPlace {
  readonly parent: TracePoint;
  readonly link: TracePoint | null;
  readonly isRemote: boolean;
}

export class RunTraces {
  readonly #tracer: Tracer;
  /** In the order of their opening. */
  readonly #trees = new Map<string, TreeTrace>();

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  /** Called before a tree is opened, with the trace context of the caller if it gives one. */
  openTree(tree_id: string, carrier: TraceCarrier | undefined): void {
    this.#treeOf(tree_id, this.#callerOf(carrier));
  }

  /** Whether spans of a tree are recorded. */
  isRecorded(tree_id: string): boolean {
    return (this.#trees.get(tree_id) ?? this.#treeOf(tree_id, null)).sampled;
  }

  /** Whether it is known that steps of a tree have no spans. If not, `placeStep` decides. */
  hasNoSpans(tree_id: string): boolean {
    return this.#trees.get(tree_id)?.sampled === false;
  }

  /**
   * Where a step of an agent run belongs; null if its tree is not recorded. After a restart the span of the run begins
   * again here, with the same id.
   */
  placeStep(run_id: string, carrier: TraceCarrier | undefined, resumed: () => RunSpan): StepPlace | null {
    const tree_id = rootRunIdOf(run_id);
    const caller = this.#callerOf(carrier);
    const tree = this.#treeOf(tree_id, caller);
    if (!tree.sampled) return null;
    if (!tree.runs.has(run_id)) this.openRun(run_id, resumed());
    const isRemote = caller?.remote === true;
    // V3.
    if (caller?.traceId === tree.traceId) return { parent: { ...caller, sampled: true }, link: null, isRemote };
    return { parent: tree.runs.get(run_id)?.point ?? tree.root, link: caller, isRemote };
  }

  /** The place of a run or of the nearest run above it. Its `sampled` says whether to record spans. */
  pointOf(run_id: string): TracePoint {
    const tree = this.#treeOf(rootRunIdOf(run_id), null);
    if (tree.runs.size === 0) return tree.root;
    for (let id = run_id; id !== ''; id = parentIdOf(id)) {
      const point = tree.runs.get(id)?.point;
      if (point !== undefined) return point;
    }
    return tree.root;
  }

  traceIdOf(run_id: string): string {
    const tree_id = rootRunIdOf(run_id);
    return this.#trees.get(tree_id)?.traceId ?? traceIdOf(tree_id);
  }

  /** Begins the span of a run. */
  openRun(run_id: string, span: RunSpan): void {
    const tree = this.#treeOf(rootRunIdOf(run_id), null);
    if (!tree.sampled || tree.runs.has(run_id)) return;
    const above = this.#nearestRun(tree, run_id) ?? tree.parent;
    const ids = { traceId: tree.traceId, spanId: spanIdOf(run_id) };
    tree.runs.set(run_id, this.#tracer.start({ ...span, kind: 'internal', parent: above, ids }));
  }

  endRun(run_id: string, end: SpanOutcome): void {
    const tree_id = rootRunIdOf(run_id);
    const tree = this.#trees.get(tree_id);
    tree?.runs.get(run_id)?.end(end);
    tree?.runs.delete(run_id);
    if (run_id === tree_id) this.#trees.delete(tree_id);
  }

  record(span: SpanStart, end: SpanOutcome): void {
    this.#tracer.record(span, end);
  }

  start(span: SpanStart): OpenSpan {
    return this.#tracer.start(span);
  }

  runAt<T>(point: TracePoint, work: () => T): T {
    return this.#tracer.runAt(point, work);
  }

  #nearestRun({ runs }: TreeTrace, run_id: string): TracePoint | null {
    for (let id = parentIdOf(run_id); id !== ''; id = parentIdOf(id)) {
      const open = runs.get(id);
      if (open !== undefined) return open.point;
    }
    return null;
  }

  /** The code that calls, or the context that it passes on. An active span of the same trace is the nearer one. */
  #callerOf(carrier: TraceCarrier | undefined): TracePoint | null {
    const given = carrier === undefined ? null : parseTraceCarrier(carrier);
    const active = this.#tracer.active();
    return active !== null && (given === null || given.traceId === active.traceId) ? active : given;
  }

  #treeOf(tree_id: string, caller: TracePoint | null): TreeTrace {
    const known = this.#trees.get(tree_id);
    if (known !== undefined) return known;
    const tree = this.#createTree(tree_id, caller);
    this.#trees.set(tree_id, tree);
    const [oldest] = this.#trees.keys();
    if (this.#trees.size > TREES_MAX && oldest !== undefined) this.#trees.delete(oldest);
    return tree;
  }

  /** V1, V2, V4. */
  #createTree(tree_id: string, caller: TracePoint | null): TreeTrace {
    const { ratio, followsCallers } = this.#tracer;
    const own = traceIdOf(tree_id);
    const sampled = (followsCallers && caller?.sampled === true) || isInRatio(own, ratio);
    const parent = caller === null ? null : { ...caller, sampled };
    const root = parent ?? { traceId: own, spanId: spanIdOf(tree_id), sampled, remote: true };
    return { traceId: root.traceId, parent, sampled, root, runs: new Map() };
  }
}

/** The id of the run above; empty for a root. */
const parentIdOf = (run_id: string): string => run_id.slice(0, Math.max(0, run_id.lastIndexOf('.')));
