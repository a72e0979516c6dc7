// Measures effects, and gives what they call its place in the trace.

import type { TraceCarrier, TracePoint } from '../../core/contract/trace-context.js';
import { toTraceCarrier } from '../../core/contract/trace-context.js';
import type { Catalogue } from '../../core/contract/policy/catalogue.js';
import type { Effect, EffectResult } from '../../core/contract/run/effect.js';
import { NO_REPLY } from '../../core/contract/policy/decision-points.js';
import type { Effects } from '../../engine/tree-engine.js';
import type { Attributes, OpenSpan } from '../../engine/ports/telemetry.js';
import type { EffectCarriers } from '../../runtime/engine-observation.js';
import { observedAction } from '../../runtime/observed-names.js';
import type { EngineTelemetry } from './engine-telemetry.js';

type EffectReturn = EffectResult | Promise<EffectResult>;

/** The trace contexts of the effects in flight. */
export class EffectTraces implements EffectCarriers {
  readonly #telemetry: Pick<EngineTelemetry, 'pointOf'>;
  /** The spans of effects. An effect that is not recorded has none, and the place of its step or run. */
  readonly #points = new WeakMap<Effect, TracePoint>();

  constructor(telemetry: Pick<EngineTelemetry, 'pointOf'>) {
    this.#telemetry = telemetry;
  }

  set(effect: Effect, point: TracePoint): void {
    this.#points.set(effect, point);
  }

  /** For the code behind an effect. */
  carrierOf(effect: Effect): { readonly trace?: TraceCarrier } {
    const point = this.#points.get(effect) ?? this.#telemetry.pointOf(effect.run_id);
    return point === null ? NO_CARRIER : { trace: toTraceCarrier(point) };
  }
}

const NO_CARRIER = {};

interface TracedEffectsParts {
  readonly telemetry: EngineTelemetry;
  readonly traces: EffectTraces;
  readonly catalogue: Catalogue;
}

/** An effect that runs. */
interface EffectCall {
  readonly effect: Effect;
  readonly startMs: number;
  /** Null if it is not recorded. */
  readonly span: OpenSpan | null;
}

/** `effects`, with a span and a measured time for each. */
export class TracedEffects implements Effects {
  readonly #effects: Effects;
  readonly #parts: TracedEffectsParts;

  constructor(effects: Effects, parts: TracedEffectsParts) {
    this.#effects = effects;
    this.#parts = parts;
  }

  get isElsewhere(): boolean {
    return this.#effects.isElsewhere ?? false;
  }

  gather: Effects['gather'] = (request) => this.#effects.gather(request);

  ask: NonNullable<Effects['ask']> = async (query) => (await this.#effects.ask?.(query)) ?? NO_REPLY;

  canRun = (effect: Effect): boolean => this.#effects.canRun?.(effect) ?? true;

  forgetUsage = (case_id: string): void => this.#effects.forgetUsage?.(case_id);

  run(effect: Effect, inCommit: boolean): EffectReturn {
    const call = this.#start(effect, NO_ATTRIBUTES);
    let answer: EffectReturn;
    try {
      answer =
        call.span === null
          ? this.#effects.run(effect, inCommit)
          : this.#runAt(call.span, () => this.#effects.run(effect, inCommit));
    } catch (error) {
      return this.#fail(call, error);
    }
    return this.#conclude(call, answer);
  }

  settle(effect: Effect): EffectReturn {
    const call = this.#start(effect, SETTLED);
    let answer: EffectReturn;
    try {
      answer =
        call.span === null ? this.#effects.settle(effect) : this.#runAt(call.span, () => this.#effects.settle(effect));
    } catch (error) {
      return this.#fail(call, error);
    }
    return this.#conclude(call, answer);
  }

  #runAt({ point }: OpenSpan, work: () => EffectReturn): EffectReturn {
    return this.#parts.telemetry.traces?.runAt(point, work) ?? work();
  }

  #conclude(call: EffectCall, answer: EffectReturn): EffectReturn {
    if (answer instanceof Promise) {
      return answer.then(
        (result) => this.#conclude(call, result),
        (error: unknown) => this.#fail(call, error),
      );
    }
    const { status } = answer;
    this.#end(call, status, answer.status === 'failed' ? answer.cause : status === 'unknown' ? 'UNKNOWN' : null);
    return answer;
  }

  #fail(call: EffectCall, error: unknown): never {
    this.#end(call, 'unknown', 'UNKNOWN');
    throw error;
  }

  #end({ effect, startMs, span }: EffectCall, status: string, cause: string | null): void {
    const { telemetry } = this.#parts;
    const endMs = telemetry.now();
    telemetry.metrics.effect(endMs - startMs, this.#actionOf(effect), status);
    span?.end({ endMs, attributes: { 'turnpike.effect.status': status }, error: cause });
  }

  #start(effect: Effect, more: Attributes): EffectCall {
    const { telemetry } = this.#parts;
    const startMs = telemetry.now();
    const parent = telemetry.recordedPointOf(effect.run_id);
    return { effect, startMs, span: parent === null ? null : this.#startSpan(effect, { parent, startMs, more }) };
  }

  #startSpan(
    effect: Effect,
    { parent, startMs, more }: { readonly parent: TracePoint; readonly startMs: number; readonly more: Attributes },
  ): OpenSpan | null {
    const { telemetry, traces } = this.#parts;
    if (telemetry.traces === null) return null;
    const name = this.#toolOf(effect);
    const span = telemetry.traces.start({
      name: `execute_tool ${name}`,
      kind: 'internal',
      parent,
      startMs,
      attributes: {
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': name,
        'gen_ai.tool.type': 'function',
        'gen_ai.tool.call.id': effect.run_id,
        ...more,
      },
    });
    traces.set(effect, span.point);
    return span;
  }

  #actionOf({ action }: Effect): string {
    return observedAction(this.#parts.catalogue, action);
  }

  /** The name of a registered tool, or of the action. */
  #toolOf(effect: Effect): string {
    const { action, args } = effect;
    const tool = action === 'CALL_TOOL' ? args['tool'] : undefined;
    return typeof tool === 'string' && this.#parts.catalogue.tool(tool) !== undefined ? tool : this.#actionOf(effect);
  }
}

const NO_ATTRIBUTES: Attributes = {};
const SETTLED: Attributes = { 'turnpike.effect.settled': true };
