// The only way to run effects: every effect of a tree passes this gateway to the executor of its action, and only with
// the capability of its allowed, running mediated run.
//
//   sandbox actions                the sandbox, synchronously
//   CALL_TOOL                      a registered tool
//   WRITE_RECORD READ_RECORDS      a registered target: the ledger's own database, or another one
//   what a feature executes        that feature, by its entry in the registry: exports, the checks of sessions
//   any other action               a registered action

import type { Effect, EffectResult, SandboxRequest, SandboxFacts } from '../core/contract/run/effect.js';
import { ACTION_NAMES } from '../core/contract/policy/catalogue.js';
import { isSchemaInstance } from '../core/contract/policy/registered-schema.js';
import type { DecisionQuery, DecisionReply } from '../core/contract/policy/decision-points.js';
import type { Effects } from '../engine/tree-engine.js';
import { requireCapability } from '../engine/ports/effects/capability.js';
import type { Sandbox } from '../engine/ports/effects/sandbox.js';
import { isJsonObject, type JsonObject } from '../core/contract/json.js';
import { BoundedCalls, type Bounds } from '../runtime/effects/bounded-calls.js';
import {
  codeOf,
  type Action,
  type EffectContext,
  type RegistrationOptions,
  type Tool,
} from '../runtime/effects/define-effects.js';
import type { EffectExecutor, EffectsOfFeature } from '../runtime/host-feature.js';
import { RecordEffects } from '../runtime/effects/record-effects.js';
import type { EffectObserver } from '../runtime/engine-observation.js';

type EffectReturn = EffectResult | Promise<EffectResult>;

/** Code of the service, with its input. */
interface Callee {
  readonly definition: Tool | Action;
  /** A copy of the tree's own input, because the service's code may change it. */
  readonly input: JsonObject;
  readonly bounds: Bounds;
  readonly idempotent: boolean;
}

/** The effects that one feature executes. */
type FeatureExecutor = Omit<EffectExecutor, 'abort'> & Pick<EffectsOfFeature, 'has' | 'changesSandbox'>;

export interface GatewayParts {
  readonly sandbox: Sandbox;
  readonly calls: BoundedCalls;
  readonly records: RecordEffects;
  readonly features: readonly FeatureExecutor[];
  readonly decisionPoints: Pick<Effects, 'ask'>;
  readonly registrations: RegistrationOptions;
  /** Null without telemetry. */
  readonly observer: EffectObserver | null;
}

export class EffectGateway implements Effects {
  readonly #sandbox: Sandbox;
  readonly #calls: BoundedCalls;
  readonly #records: RecordEffects;
  readonly #features: readonly FeatureExecutor[];
  readonly #decisionPoints: GatewayParts['decisionPoints'];
  readonly #observer: GatewayParts['observer'];
  readonly #actions: ReadonlyMap<string, Action>;
  readonly #tools: ReadonlyMap<string, Tool>;

  constructor({ sandbox, calls, records, features, decisionPoints, observer, registrations }: GatewayParts) {
    const { actions = [], tools = [] } = registrations;
    this.#observer = observer;
    this.#sandbox = sandbox;
    this.#calls = calls;
    this.#records = records;
    this.#features = features;
    this.#decisionPoints = decisionPoints;
    this.#actions = new Map(actions.map((action) => [action.definition.name, action]));
    this.#tools = new Map(tools.map((tool) => [tool.definition.name, tool]));
  }

  get isElsewhere(): boolean {
    return this.#sandbox.isElsewhere ?? false;
  }

  gather(request: SandboxRequest): SandboxFacts {
    return this.#sandbox.gather(request);
  }

  ask(query: DecisionQuery): Promise<DecisionReply> {
    return this.#decisionPoints.ask(query);
  }

  run(effect: Effect, inCommit: boolean): EffectReturn {
    if (this.#observer === null) return this.#run(effect, inCommit);
    return this.#observer.measure(effect, false, () => this.#run(effect, inCommit));
  }

  #run(effect: Effect, inCommit: boolean): EffectReturn {
    requireCapability(effect);
    if (SANDBOX_ACTIONS.has(effect.action)) return this.#sandbox.perform(effect);
    if (this.#records.has(effect)) return this.#records.run(effect, inCommit);
    const feature = this.#findFeature(effect);
    if (feature !== undefined) return this.#runByFeature(feature, effect);
    const callee = this.#findCallee(effect);
    return callee === null ? NOT_REGISTERED : this.#runCallee(callee, effect);
  }

  /** Whether this service has registered what the effect needs: another service may have opened the tree. */
  canRun(effect: Effect): boolean {
    if (SANDBOX_ACTIONS.has(effect.action) || this.#findFeature(effect) !== undefined) return true;
    return this.#records.has(effect) ? this.#records.canRun(effect) : this.#findCallee(effect) !== null;
  }

  forgetUsage(case_id: string): void {
    this.#sandbox.forget?.(case_id);
  }

  /** After a crash: runs a repeatable effect again with its key; for others, queries their outcome (D8). */
  settle(effect: Effect): EffectReturn {
    if (this.#observer === null) return this.#settle(effect);
    return this.#observer.measure(effect, true, () => this.#settle(effect));
  }

  #settle(effect: Effect): EffectReturn {
    requireCapability(effect);
    if (SANDBOX_ACTIONS.has(effect.action)) return this.#sandbox.settle(effect);
    if (this.#records.has(effect)) return this.#records.settle(effect);
    const feature = this.#findFeature(effect);
    if (feature !== undefined) return feature.settle(effect);
    const callee = this.#findCallee(effect);
    if (callee === null) return { status: 'unknown' };
    return callee.idempotent || !callee.bounds.hasSideEffects
      ? this.#runCallee(callee, effect)
      : this.#reconcile(callee, effect, { status: 'unknown' });
  }

  #findFeature(effect: Effect): FeatureExecutor | undefined {
    return this.#features.find((feature) => feature.has(effect));
  }

  /**
   * A command of a check has no quota of its own and may change anything in the sandbox of its case. The usage is
   * therefore measured again before the next authorization of an agent, and recorded with the result.
   */
  async #runByFeature(feature: FeatureExecutor, effect: Effect): Promise<EffectResult> {
    const answer = await feature.run(effect);
    const { case_id } = effect;
    if (case_id === null || !feature.changesSandbox) return answer;
    this.#sandbox.forget?.(case_id);
    if (answer.status !== 'done') return answer;
    const { usage } = this.#sandbox.gather({ case_id, paths: [], usage: true, portable_names: false });
    return { ...answer, result: { ...answer.result, sandbox_usage: usage === null ? null : { ...usage } } };
  }

  /**
   * If the answer does not show the outcome, the service may still know it. For a call that is still running, it can
   * only confirm what has happened: the rest may still happen.
   */
  async #runCallee(callee: Callee, effect: Effect): Promise<EffectResult> {
    const { run } = codeOf(callee.definition);
    const call = { ended: false };
    const result = await this.#calls.run(
      async (context) => {
        try {
          return await run(structuredClone(callee.input), context);
        } finally {
          call.ended = true;
        }
      },
      this.#contextOf(effect),
      { ...callee.bounds, isRepeatable: callee.idempotent && effect.repeatable === true },
    );
    if (result.status === 'done' || (result.status === 'failed' && result.cause !== 'REPEATABLE')) return result;
    const { ended } = call;
    const reconciled = await this.#reconcile(callee, effect, result);
    if (reconciled.status === 'unknown') return result;
    return ended || reconciled.status === 'done' ? reconciled : result;
  }

  async #reconcile(callee: Callee, effect: Effect, fallback: EffectResult): Promise<EffectResult> {
    const { reconcile } = codeOf(callee.definition);
    if (reconcile === null) return fallback;
    const callback: Parameters<BoundedCalls['reconcile']>[0] = (context) =>
      reconcile(structuredClone(callee.input), context);
    return this.#calls.reconcile(callback, this.#contextOf(effect), callee.bounds);
  }

  #contextOf(effect: Effect): Omit<EffectContext, 'signal'> {
    const { run_id, case_id, idempotency_key } = effect;
    return { run_id, case_id, idempotency_key, ...this.#observer?.carrierOf(effect) };
  }

  #findCallee({ action, args }: Effect): Callee | null {
    if (action === 'CALL_TOOL') {
      const { tool: name, input } = args;
      const tool = typeof name === 'string' ? this.#tools.get(name) : undefined;
      if (tool === undefined || !isJsonObject(input)) return null;
      const { output, timeout_ms, result_bytes_max, idempotent } = tool.definition;
      const conforms = (answer: JsonObject): boolean => isSchemaInstance(output, answer);
      return {
        definition: tool,
        input,
        idempotent,
        bounds: { timeout_ms, result_bytes_max, isConforming: conforms, hasSideEffects: true, isRepeatable: false },
      };
    }
    const definition = this.#actions.get(action);
    if (definition === undefined) return null;
    const { timeout_ms, result_bytes_max, idempotent, risk, needs } = definition.definition;
    const changes = risk !== 'read' || 'write' in needs;
    const bounds = {
      timeout_ms,
      result_bytes_max,
      isConforming: isJsonObject,
      hasSideEffects: changes,
      isRepeatable: false,
    };
    return { definition, input: args, idempotent, bounds };
  }
}

const SANDBOX_ACTIONS: ReadonlySet<string> = new Set(ACTION_NAMES);

/** The service that opened the tree had it registered and this one has not, so nothing was executed. */
const NOT_REGISTERED: EffectResult = { status: 'failed', cause: 'NOT_EXECUTED' };
