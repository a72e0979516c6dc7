// Observes the engine: spans of runs, steps, decisions and commits, and metrics. It sees only what is durable, and its
// errors stay here.

import type { TraceCarrier, TracePoint } from '../../core/contract/trace-context.js';
import type { RunCreated } from '../../core/contract/run/entry.js';
import { type RunContext, rootRunIdOf } from '../../core/contract/run/run-context.js';
import type { StepTrace } from '../../core/contract/run/step-trace.js';
import type { Catalogue } from '../../core/contract/policy/catalogue.js';
import type { ObservedInput, ObservedTick, TickObserver } from '../../engine/tick/tick-observer.js';
import type { RunTermination } from '../../kernel/decision.js';
import type { Tree } from '../../kernel/tree.js';
import type { Log } from '../../engine/ports/log.js';
import type { OpenSpan, Telemetry, Attributes } from '../../engine/ports/telemetry.js';
import type { RunTracing } from '../../runtime/agents/agents.js';
import { observedAction, OTHER } from '../../runtime/observed-names.js';
import { endingCode, RunLog, ObservedRuns } from '../../runtime/run-log.js';
import { createEngineMetrics, type EngineMetrics } from './engine-metrics.js';
import { RunTraces, type RunSpan } from './run-traces.js';
import { isIdentifier } from '../../core/contract/free-text.js';

interface EngineTelemetryOptions {
  readonly telemetry: Telemetry;
  readonly log: Log;
  readonly catalogue: Catalogue;
}

/** A step whose caller waits in this process. */
interface ActiveStep {
  readonly startMs: number;
  /** Null if its trace is not recorded. */
  readonly span: OpenSpan | null;
}

export class EngineTelemetry implements TickObserver, RunTracing {
  readonly traces: RunTraces | null;
  readonly metrics: EngineMetrics;
  readonly #options: EngineTelemetryOptions;
  /** The service log, with the trace of the run that a line names. */
  readonly log: Log;
  readonly #runLog: RunLog;
  /** By agent run, which has one step at a time. */
  readonly #steps = new Map<string, ActiveStep>();
  readonly #runs = new ObservedRuns();
  /** Characters of the entries of the current tick. */
  #bytes = 0;
  #hasFailed = false;

  constructor(options: EngineTelemetryOptions) {
    const { telemetry, log, catalogue } = options;
    this.#options = options;
    this.traces = telemetry.tracer === null ? null : new RunTraces(telemetry.tracer);
    this.metrics = createEngineMetrics(telemetry.meter);
    const { traces } = this;
    this.log = traces === null ? log : tracedLog(log, (run_id) => traces.traceIdOf(run_id));
    this.#runLog = new RunLog({ log: this.log, catalogue });
  }

  now(): number {
    return this.#options.telemetry.now();
  }

  /** Called before the tree is opened. */
  openTree(tree_id: string, trace: TraceCarrier | undefined): void {
    this.#guard(() => this.traces?.openTree(tree_id, trace));
  }

  /** A step begins: its proposal is about to be submitted. */
  startStep(run: RunContext, trace: TraceCarrier | undefined): void {
    try {
      const startMs = this.now();
      const { traces } = this;
      const span =
        traces === null || traces.hasNoSpans(run.root_run_id)
          ? null
          : this.#startStepSpan(traces, run, { startMs, trace });
      this.#steps.set(run.run_id, { startMs, span });
    } catch (error) {
      this.#onFailure(error);
    }
  }

  /** Ends the observation of the step of an agent run that has no outcome; does nothing if it has one. */
  endStep(run_id: string): void {
    const step = this.#steps.get(run_id);
    if (step === undefined) return;
    this.#steps.delete(run_id);
    this.#guard(() => step.span?.end({ endMs: this.now(), error: 'NO_OUTCOME' }));
  }

  onTick(tick: ObservedTick): void {
    // The lines name traces that end with this tick, so they are first.
    this.#runLog.onTick(tick);
    try {
      const { metrics } = this;
      let entries = 0;
      this.#bytes = 0;
      for (const outcome of tick.outcomes) {
        metrics.queueWait(tick.startedAt - outcome.item.queuedAt);
        entries += this.#onOutcome(outcome, tick);
      }
      if (entries > 0) metrics.commit(tick.committedAt - tick.decidedAt, entries, this.#bytes);
    } catch (error) {
      this.#onFailure(error);
    }
  }

  onFolded(_trees: number, sinceMs: number): void {
    this.#guard(() => this.metrics.fold(this.now() - sinceMs));
  }

  /** The place in the trace of what an effect calls. */
  pointOf(run_id: string): TracePoint | null {
    return this.#stepOf(run_id)?.span?.point ?? this.traces?.pointOf(run_id) ?? null;
  }

  /** The place of what an effect does; null if it is not recorded. */
  recordedPointOf(run_id: string): TracePoint | null {
    const { traces } = this;
    if (traces?.isRecorded(rootRunIdOf(run_id)) !== true) return null;
    const point = this.pointOf(run_id);
    return point?.sampled === true ? point : null;
  }

  /** Observes one input of a tick. @returns the number of its entries */
  #onOutcome(outcome: ObservedInput, tick: ObservedTick): number {
    const { tree_id, decisions } = outcome;
    const { input } = outcome.item.submission;
    const { traces } = this;
    // The step may end with this input, so its span is needed before.
    const isRecorded = traces !== null && decisions.length > 0 && traces.isRecorded(tree_id);
    const step = isRecorded ? this.#stepOf(input.run_id) : undefined;
    if (input.kind === OPEN_SESSION) this.#openSession(input.run_id, tick);
    let count = 0;
    let hasStepTrace = false;
    for (const { entries } of decisions) {
      count += entries.length;
      for (const { entry, text } of entries) {
        this.#bytes += text.length;
        if (entry.type === 'step_trace') {
          hasStepTrace = true;
          this.#onStepTrace(entry.body, tick);
        } else if (entry.type === 'run_created') this.#onRunCreated(entry.body, tick);
      }
    }
    if (isRecorded && count > 0) this.#recordWork(step, outcome, tick, { entries: count, hasStepTrace });
    for (const { ended } of decisions) for (const ending of ended) this.#onRunEnded(ending, tree_id, tick);
    return count;
  }

  /** Code that observes must never end a step, a commit or the process. */
  #guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#onFailure(error);
    }
  }

  #onFailure(error: unknown): void {
    if (!this.#hasFailed) this.#options.log.error('telemetry has failed; further failures are not logged', { error });
    this.#hasFailed = true;
  }

  #startStepSpan(
    traces: RunTraces,
    run: RunContext,
    { startMs, trace }: { readonly startMs: number; readonly trace: TraceCarrier | undefined },
  ): OpenSpan | null {
    const place = traces.placeStep(run.run_id, trace, () => runSpan({ ...run, isResumed: true }, startMs));
    if (place === null) return null;
    const { parent, link, isRemote } = place;
    return traces.start({
      name: 'turnpike.step',
      kind: isRemote ? 'server' : 'internal',
      parent,
      startMs,
      attributes: { 'turnpike.run.id': run.run_id },
      ...(link === null ? {} : { link }),
    });
  }

  /** The step of this agent run, or of the nearest one above a mediated run. */
  #stepOf(run_id: string): ActiveStep | undefined {
    if (this.#steps.size === 0) return undefined;
    const own = this.#steps.get(run_id);
    if (own !== undefined) return own;
    for (let id = run_id; id.includes('.'); id = id.slice(0, id.lastIndexOf('.'))) {
      const step = this.#steps.get(id);
      if (step !== undefined) return step;
    }
    return undefined;
  }

  #onRunCreated(run: RunCreated, { tree, startedAt }: ObservedTick): void {
    this.#runs.onCreated(run);
    if (!SPANNED_KINDS.has(run.run_kind)) return;
    this.traces?.openRun(run.run_id, runSpan(withKnownNames(run, tree(run.root_run_id)), startedAt));
  }

  #openSession(run_id: string, { startedAt }: ObservedTick): void {
    this.traces?.openRun(run_id, runSpan({ run_id, run_kind: 'session' }, startedAt));
  }

  #onStepTrace(trace: StepTrace, { committedAt: at }: ObservedTick): void {
    const { run_id, outcome, rule_id, error_code } = trace;
    const step = this.#steps.get(run_id);
    if (step !== undefined) {
      const action = observedAction(this.#options.catalogue, trace.action);
      this.#steps.delete(run_id);
      this.metrics.step(at - step.startMs, action, outcome);
      step.span?.end({ endMs: at, attributes: stepAttributes(trace, action), error: error_code });
    }
    if (outcome === 'DENIED') this.metrics.denial(rule_id);
  }

  #onRunEnded(
    { run_id, state, reason }: RunTermination,
    tree_id: string,
    { tree, committedAt: at }: ObservedTick,
  ): void {
    const run = this.#runs.onEnded(run_id, tree(tree_id));
    if (run === null) return;
    const { kind } = run;
    const code = endingCode(reason);
    if (kind !== 'orchestrator') this.metrics.runEnded(kind, state);
    if (state === 'denied' && kind !== 'orchestrator') this.metrics.denial(code);
    this.traces?.endRun(run_id, {
      endMs: at,
      attributes: { 'turnpike.run.state': state, ...(code === null ? {} : { 'turnpike.run.reason': code }) },
      error: state === 'failed' || state === 'denied' ? (code ?? state) : null,
    });
  }

  /** The decision and the commit of one input, below its step, or else below its run. */
  #recordWork(
    step: ActiveStep | undefined,
    outcome: ObservedInput,
    tick: ObservedTick,
    { entries, hasStepTrace }: { readonly entries: number; readonly hasStepTrace: boolean },
  ): void {
    const { traces } = this;
    const { kind, run_id } = outcome.item.submission.input;
    const parent = step === undefined ? (traces?.pointOf(run_id) ?? null) : (step.span?.point ?? null);
    if (traces === null || parent?.sampled !== true) return;
    const { startedAt, decidedAt, committedAt } = tick;
    if (step !== undefined) {
      const attributes = PHASES_OF[kind === 'proposal' ? 'proposal' : 'other'][hasStepTrace ? 'last' : 'first'];
      traces.record(
        { name: 'turnpike.phases', kind: 'internal', parent, startMs: startedAt, attributes },
        { endMs: decidedAt },
      );
    }
    const size = { 'turnpike.commit.inputs': tick.outcomes.length, 'turnpike.commit.entries': entries };
    traces.record(
      { name: 'turnpike.commit', kind: 'internal', parent, startMs: decidedAt, attributes: size },
      { endMs: committedAt },
    );
  }
}

/** The kind of the input that opens a session, which is unknown without the feature. */
const OPEN_SESSION: string = 'open_session';
/** Mediated runs are the effects of steps, and an orchestrator is its tree. */
const SPANNED_KINDS: ReadonlySet<string> = new Set(['agent', 'promotion', 'export']);

const phases = (first: string, last: string) => ({ 'turnpike.phase.first': first, 'turnpike.phase.last': last });

/** The phases that one decision passes: up to the verdict, or up to the record of the step. */
const PHASES_OF = {
  proposal: { first: phases('RECEIVE', 'AUTHORIZE'), last: phases('RECEIVE', 'RECORD') },
  other: { first: phases('EXECUTE', 'EXECUTE'), last: phases('EXECUTE', 'RECORD') },
} as const;

/** The names of a run that the policy of its tree has. */
function withKnownNames(run: RunCreated, tree: Tree | null): NamedRun {
  const { lanes, roles } = tree?.policy ?? {};
  const { run_id, run_kind, actor } = run;
  return {
    run_id,
    run_kind,
    actor,
    role_id: roles?.has(run.role_id) === true ? run.role_id : OTHER,
    lane_id: run.lane_id === null ? null : lanes?.has(run.lane_id) === true ? run.lane_id : OTHER,
  };
}

// Names and attributes of spans: the semantic conventions of OpenTelemetry for generative AI where they have a name,
// and names below `turnpike.` for the rest.

/** A run with the names that its span may show. */
interface NamedRun extends Partial<Pick<RunContext, 'actor' | 'role_id' | 'lane_id'>> {
  readonly run_id: string;
  readonly run_kind: RunContext['run_kind'] | 'session';
  /** Whether this process did not see the start of the run. */
  readonly isResumed?: boolean;
}

function runSpan(run: NamedRun, startMs: number): RunSpan {
  const { run_id, run_kind, role_id, lane_id, actor, isResumed = false } = run;
  const attributes: Record<string, string | boolean> = {
    'gen_ai.conversation.id': rootRunIdOf(run_id),
    'turnpike.run.id': run_id,
    'turnpike.run.kind': run_kind,
  };
  if (role_id !== undefined) attributes['turnpike.role'] = role_id;
  if (lane_id !== undefined && lane_id !== null) attributes['turnpike.lane'] = lane_id;
  if (isResumed) attributes['turnpike.run.resumed'] = true;
  if (run_kind !== 'agent') {
    attributes['gen_ai.operation.name'] = 'invoke_workflow';
    attributes['gen_ai.workflow.name'] = run_kind;
    return { name: `invoke_workflow ${run_kind}`, startMs, attributes };
  }
  attributes['gen_ai.operation.name'] = 'invoke_agent';
  attributes['gen_ai.provider.name'] = 'turnpike';
  if (role_id !== undefined) attributes['gen_ai.agent.name'] = role_id;
  if (actor !== undefined && isIdentifier(actor.actor_id)) attributes['gen_ai.agent.id'] = actor.actor_id;
  return { name: role_id === undefined ? 'invoke_agent' : `invoke_agent ${role_id}`, startMs, attributes };
}

/** @param action its name if the catalogue has it */
function stepAttributes(trace: StepTrace, action: string): Attributes {
  const { step_index, outcome, rule_id, phase_failed_at } = trace;
  const attributes: Record<string, string | number> = {
    'turnpike.action': action,
    'turnpike.outcome': outcome,
    'turnpike.step.index': step_index,
  };
  if (rule_id !== null) attributes['turnpike.rule'] = rule_id;
  if (phase_failed_at !== null) attributes['turnpike.phase.failed'] = phase_failed_at;
  return attributes;
}

type Fields = Readonly<Record<string, unknown>>;

/** `log`, with the trace id of the run or tree that a line names. */
function tracedLog(log: Log, traceIdOf: (run_id: string) => string): Log {
  const withTrace = (fields: Fields | undefined): Fields | undefined => {
    const run_id = fields?.['run_id'] ?? fields?.['tree_id'];
    return typeof run_id === 'string' ? { ...fields, trace_id: traceIdOf(run_id) } : fields;
  };
  return {
    info: (message, fields) => log.info(message, withTrace(fields)),
    warn: (message, fields) => log.warn(message, withTrace(fields)),
    error: (message, fields) => log.error(message, withTrace(fields)),
  };
}
