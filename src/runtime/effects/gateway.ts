// The one place from which anything is done: every effect of a tree comes through here, each to the executor of its
// action, and only with the capability of its allowed, running mediated run.
//
//   sandbox actions            the sandbox, synchronously
//   CALL_TOOL                  a registered tool
//   WRITE_RECORD READ_RECORDS  a registered target: the ledger's own database, or another one
//   EXPORT_BUNDLE              the assembly of a bundle, for export runs
//   RUN_VERIFICATION REVIEW_PHASE  what the platform itself does for a session
//   anything else              a registered action

import type { Effect, EffectResult, GatherRequest, SandboxFacts } from '../../contract/effect.js';
import { ACTION_NAMES } from '../../contract/actions.js';
import { satisfies } from '../../contract/registered-schema.js';
import type { Effects } from '../../engine/tree-engine.js';
import { requireCapability } from '../../ports/capability.js';
import type { Sandbox } from '../../ports/executor.js';
import { isJsonObject, type JsonObject } from '../../contract/json.js';
import { BoundedCalls, type Bounds } from './bounded-call.js';
import { codeOf, type Action, type Registered, type Tool } from './define.js';
import { EXPORT_BUNDLE, type ExportEffects } from './export-effects.js';
import { RecordEffects } from './record-effects.js';
import type { CheckEffects } from '../sessions/check-effects.js';

type Answer = EffectResult | Promise<EffectResult>;

/** Code of the service, and what it is called with. */
interface Callee {
  readonly definition: Tool | Action;
  /** What the tree itself remembers: code of the service gets a copy, since it may change what it is given. */
  readonly input: JsonObject;
  readonly bounds: Bounds;
  readonly idempotent: boolean;
}

interface GatewayParts {
  readonly sandbox: Sandbox;
  readonly calls: BoundedCalls;
  readonly records: RecordEffects;
  readonly exports: ExportEffects;
  readonly checks: CheckEffects;
  readonly registered: Registered;
}

export class Gateway implements Effects {
  readonly #sandbox: Sandbox;
  readonly #calls: BoundedCalls;
  readonly #records: RecordEffects;
  readonly #exports: ExportEffects;
  readonly #checks: CheckEffects;
  readonly #actions: ReadonlyMap<string, Action>;
  readonly #tools: ReadonlyMap<string, Tool>;

  constructor({ sandbox, calls, records, exports, checks, registered: { actions = [], tools = [] } }: GatewayParts) {
    this.#sandbox = sandbox;
    this.#calls = calls;
    this.#records = records;
    this.#exports = exports;
    this.#checks = checks;
    this.#actions = new Map(actions.map((action) => [action.definition.name, action]));
    this.#tools = new Map(tools.map((tool) => [tool.definition.name, tool]));
  }

  gather(request: GatherRequest): SandboxFacts {
    return this.#sandbox.gather(request);
  }

  perform(effect: Effect, inCommit: boolean): Answer {
    requireCapability(effect);
    if (SANDBOX_ACTIONS.has(effect.action)) return this.#sandbox.perform(effect);
    if (this.#records.has(effect)) return this.#records.perform(effect, inCommit);
    if (effect.action === EXPORT_BUNDLE) return this.#exports.perform(effect);
    if (this.#checks.has(effect)) return this.#check(effect);
    const callee = this.#calleeOf(effect);
    return callee === null ? NOTHING_THERE : this.#call(callee, effect);
  }

  /** Whether this service has what the effect is for: another one may have opened the tree. */
  knows(effect: Effect): boolean {
    if (SANDBOX_ACTIONS.has(effect.action) || effect.action === EXPORT_BUNDLE || this.#checks.has(effect)) return true;
    return this.#records.has(effect) ? this.#records.knows(effect) : this.#calleeOf(effect) !== null;
  }

  /** After a crash: an effect that may be repeated is, by its key; of others it is asked what became of them (D8). */
  settle(effect: Effect): Answer {
    requireCapability(effect);
    if (SANDBOX_ACTIONS.has(effect.action)) return this.#sandbox.settle(effect);
    if (this.#records.has(effect)) return this.#records.settle(effect);
    if (effect.action === EXPORT_BUNDLE) return this.#exports.settle(effect);
    if (this.#checks.has(effect)) return this.#checks.settle(effect);
    const callee = this.#calleeOf(effect);
    if (callee === null) return { status: 'unknown' };
    return callee.idempotent || !callee.bounds.changes
      ? this.#call(callee, effect)
      : this.#reconcile(callee, effect, { status: 'unknown' });
  }

  /**
   * A command has no quota of its own: it may have changed anything in the sandbox of its case. So that is counted
   * again, before an agent is allowed anything by the old account; what it comes to is recorded with the result.
   */
  async #check(effect: Effect): Promise<EffectResult> {
    const answer = await this.#checks.perform(effect);
    const { case_id } = effect;
    if (case_id === null) return answer;
    this.#sandbox.forget?.(case_id);
    if (answer.status !== 'done') return answer;
    const { usage } = this.#sandbox.gather({ case_id, paths: [], usage: true, portable_names: false });
    return { ...answer, result: { ...answer.result, sandbox_usage: usage === null ? null : { ...usage } } };
  }

  /**
   * What cannot be told from the answer may be told by the service, while it is still at hand. Of a call that is still
   * under way it can only tell what has happened already: what has not happened yet still may.
   */
  async #call(callee: Callee, effect: Effect): Promise<EffectResult> {
    const { run } = codeOf(callee.definition);
    const call = { ended: false };
    const result = await this.#calls.perform(
      async (context) => {
        try {
          return await run(structuredClone(callee.input), context);
        } finally {
          call.ended = true;
        }
      },
      contextOf(effect),
      callee.bounds,
    );
    if (result.status !== 'unknown') return result;
    const { ended } = call;
    const found = await this.#reconcile(callee, effect, result);
    return ended || found.status === 'done' ? found : result;
  }

  async #reconcile(callee: Callee, effect: Effect, otherwise: EffectResult): Promise<EffectResult> {
    const { reconcile } = codeOf(callee.definition);
    if (reconcile === null) return otherwise;
    const ask: Parameters<BoundedCalls['reconcile']>[0] = (context) =>
      reconcile(structuredClone(callee.input), context);
    return this.#calls.reconcile(ask, contextOf(effect), callee.bounds);
  }

  #calleeOf({ action, args }: Effect): Callee | null {
    if (action === 'CALL_TOOL') {
      const { tool: name, input } = args;
      const tool = typeof name === 'string' ? this.#tools.get(name) : undefined;
      if (tool === undefined || !isJsonObject(input)) return null;
      const { output, timeout_ms, result_bytes_max, idempotent } = tool.definition;
      const conforms = (answer: JsonObject): boolean => satisfies(output, answer);
      return { definition: tool, input, idempotent, bounds: { timeout_ms, result_bytes_max, conforms, changes: true } };
    }
    const definition = this.#actions.get(action);
    if (definition === undefined) return null;
    const { timeout_ms, result_bytes_max, idempotent, risk, needs } = definition.definition;
    const changes = risk !== 'read' || 'write' in needs;
    const bounds = { timeout_ms, result_bytes_max, conforms: isJsonObject, changes };
    return { definition, input: args, idempotent, bounds };
  }
}

const SANDBOX_ACTIONS: ReadonlySet<string> = new Set(ACTION_NAMES);

/** The tree was opened by a service that had it: this one has not, so nothing was done. */
const NOTHING_THERE: EffectResult = { status: 'failed', cause: 'NOT_EXECUTED' };

const contextOf = ({ run_id, case_id, idempotency_key }: Effect) => ({ run_id, case_id, idempotency_key });
