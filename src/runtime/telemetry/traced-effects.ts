// Measures effects, and gives what they call its place in the trace.

import type { TraceCarrier, TracePoint } from '../../contract/trace-context.js';
import { toTraceCarrier } from '../../contract/trace-context.js';
import type { Catalogue } from '../../contract/policy/catalogue.js';
import type { Effect, EffectResult } from '../../contract/run/effect.js';
import type { Effects } from '../../engine/tree-engine.js';
import type { Attributes, OpenSpan } from '../../ports/telemetry.js';
import type { EngineTelemetry } from './engine-telemetry.js';
import { OTHER } from './run-traces.js';

type EffectReturn = EffectResult | Promise<EffectResult>;

/** The trace contexts of the effects in flight. */
export class EffectTraces {
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

  canRun = (effect: Effect): boolean => this.#effects.canRun?.(effect) ?? true;

  forgetUsage = (case_id: string): void => this.#effects.forgetUsage?.(case_id);

  run(effect: Effect, inCommit: boolean): EffectReturn {
    return this.#observe(effect, () => this.#effects.run(effect, inCommit), NO_ATTRIBUTES);
  }

  settle(effect: Effect): EffectReturn {
    return this.#observe(effect, () => this.#effects.settle(effect), SETTLED);
  }

  #observe(effect: Effect, work: () => EffectReturn, more: Attributes): EffectReturn {
    const { telemetry } = this.#parts;
    const startMs = telemetry.now();
    const span = this.#start(effect, startMs, more);
    const end = (status: string, cause: string | null): void => {
      const endMs = telemetry.now();
      telemetry.metrics?.effect(endMs - startMs, this.#actionOf(effect), status);
      span?.end({ endMs, attributes: { 'turnpike.effect.status': status }, error: cause });
    };
    const fail = (error: unknown): never => {
      end('unknown', 'UNKNOWN');
      throw error;
    };
    const conclude = (result: EffectResult): EffectResult => {
      end(result.status, result.status === 'failed' ? result.cause : result.status === 'unknown' ? 'UNKNOWN' : null);
      return result;
    };
    let answer: EffectReturn;
    try {
      answer = span === null ? work() : (telemetry.traces?.runAt(span.point, work) ?? work());
    } catch (error) {
      return fail(error);
    }
    return answer instanceof Promise ? answer.then(conclude, fail) : conclude(answer);
  }

  #start(effect: Effect, startMs: number, more: Attributes): OpenSpan | null {
    const { telemetry, traces } = this.#parts;
    const parent = telemetry.pointOf(effect.run_id);
    if (parent?.sampled !== true || telemetry.traces === null) return null;
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
    return this.#parts.catalogue.action(action) === undefined ? OTHER : action;
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
