// Measures effects, and gives what they call its place in the trace.

import type { TraceCarrier, TracePoint } from '../../core/contract/trace-context.js';
import { toTraceCarrier } from '../../core/contract/trace-context.js';
import type { Catalogue } from '../../core/contract/policy/catalogue.js';
import type { Effect, EffectResult } from '../../core/contract/run/effect.js';
import type { Attributes, OpenSpan } from '../../engine/ports/telemetry.js';
import type { EffectObserver } from '../../runtime/engine-observation.js';
import { observedAction } from '../../runtime/observed-names.js';
import type { EngineTelemetry } from './engine-telemetry.js';

type EffectReturn = EffectResult | Promise<EffectResult>;

/** An effect that runs. */
interface EffectCall {
  readonly effect: Effect;
  readonly startMs: number;
  /** Null if it is not recorded. */
  readonly span: OpenSpan | null;
}

/** A span and a measured time for each effect. */
export class EffectTraces implements EffectObserver {
  readonly #telemetry: EngineTelemetry;
  readonly #catalogue: Catalogue;
  /** The spans of effects. An effect that is not recorded has none, and the place of its step or run. */
  readonly #points = new WeakMap<Effect, TracePoint>();

  constructor(telemetry: EngineTelemetry, catalogue: Catalogue) {
    this.#telemetry = telemetry;
    this.#catalogue = catalogue;
  }

  carrierOf(effect: Effect): { readonly trace?: TraceCarrier } {
    const point = this.#points.get(effect) ?? this.#telemetry.pointOf(effect.run_id);
    return point === null ? NO_CARRIER : { trace: toTraceCarrier(point) };
  }

  measure(effect: Effect, isSettled: boolean, work: () => EffectReturn): EffectReturn {
    const call = this.#start(effect, isSettled ? SETTLED : NO_ATTRIBUTES);
    let answer: EffectReturn;
    try {
      answer = call.span === null ? work() : this.#runAt(call.span, work);
    } catch (error) {
      return this.#fail(call, error);
    }
    return this.#conclude(call, answer);
  }

  #runAt({ point }: OpenSpan, work: () => EffectReturn): EffectReturn {
    return this.#telemetry.traces?.runAt(point, work) ?? work();
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
    const endMs = this.#telemetry.now();
    this.#telemetry.metrics.effect(endMs - startMs, this.#actionOf(effect), status);
    span?.end({ endMs, attributes: { 'turnpike.effect.status': status }, error: cause });
  }

  #start(effect: Effect, more: Attributes): EffectCall {
    const startMs = this.#telemetry.now();
    const parent = this.#telemetry.recordedPointOf(effect.run_id);
    return { effect, startMs, span: parent === null ? null : this.#startSpan(effect, { parent, startMs, more }) };
  }

  #startSpan(
    effect: Effect,
    { parent, startMs, more }: { readonly parent: TracePoint; readonly startMs: number; readonly more: Attributes },
  ): OpenSpan | null {
    const { traces } = this.#telemetry;
    if (traces === null) return null;
    const name = this.#toolOf(effect);
    const span = traces.start({
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
    this.#points.set(effect, span.point);
    return span;
  }

  #actionOf({ action }: Effect): string {
    return observedAction(this.#catalogue, action);
  }

  /** The name of a registered tool, or of the action. */
  #toolOf(effect: Effect): string {
    const { action, args } = effect;
    const tool = action === 'CALL_TOOL' ? args['tool'] : undefined;
    return typeof tool === 'string' && this.#catalogue.tool(tool) !== undefined ? tool : this.#actionOf(effect);
  }
}

const NO_CARRIER = {};
const NO_ATTRIBUTES: Attributes = {};
const SETTLED: Attributes = { 'turnpike.effect.settled': true };
