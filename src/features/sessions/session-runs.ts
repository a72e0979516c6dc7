// Sessions on this ledger. Every call becomes an input of the session's tree. Answers get the step proof, which only
// this home can make (D10).

import { parseOwnJson, canonicalJson } from '../../core/contract/json.js';
import { artifactRef, type Artifact } from '../../core/contract/artifact-ref.js';
import type { SessionAnswer, SessionErrorCode } from './contract/session-answer.js';
import type { SessionCommand } from './contract/session-command.js';
import type { SessionSpec } from './contract/session-spec.js';
import type { NewInput, Submission, TreeEngine } from '../../engine/tree-engine.js';
import { InvariantError, RunError } from '../../core/errors.js';
import { sessionAnswer, rejectionAnswer, rejectionWithoutSession } from './rules/command-answer.js';
import { toSessionRole } from './rules/apply-command.js';
import { stepProof } from './rules/step-proof.js';
import type { SessionState } from './rules/session-state.js';
import type { Clock } from '../../engine/ports/clock.js';
import type { Ids } from '../../engine/ports/ids.js';
import type { LedgerStore } from '../../engine/ports/ledger/ledger-store.js';
import type { Pace } from '../../engine/ports/pace.js';
import type { Secrets } from '../../core/contract/secrets.js';
import { createDeferred, ignoreRejection, type DeferredPromise } from '../../runtime/deferred.js';
import type { Note } from '../../runtime/agents/caller-input.js';
import type { PolicyCache } from '../../runtime/policy-cache.js';
import { SESSION_PREFIX, SessionReader, findTaskDetails, type LedgerSession } from './session-reader.js';
import {
  answerClosedSession,
  createDetailNote,
  FORCE_REPLACED,
  isRecordable,
  platformDetail,
  validatePercentage,
  hashForeignIds,
} from './session-commands.js';
import { receiveReport, toRecordedCaller, createStartSessionInput } from './session-inputs.js';
import type {
  NextRequest,
  OverrideRequest,
  SessionCaller,
  Sessions,
  StartSessionOptions,
  TaskDetails,
} from './sessions.js';
import { requireSameStart } from './same-start.js';
import type { SpecSource } from './spec/spec-source.js';

export interface SessionRunsParts {
  readonly store: LedgerStore;
  readonly policyCache: PolicyCache;
  readonly ids: Ids;
  readonly clock: Clock;
  readonly pace: Pace;
  readonly secrets: Secrets;
  readonly specs: SpecSource;
}

type CommandRequest = Pick<SessionState, 'session_id'> & {
  readonly command: SessionCommand;
  readonly by: SessionCaller;
};

export class SessionRuns implements Sessions {
  readonly #parts: SessionRunsParts;
  readonly #reader: SessionReader;
  /** Calls that wait for an answer. */
  readonly #waiting = new Set<DeferredPromise<never>>();
  #engine: TreeEngine | null = null;
  /** Starts run one after another: of two starts for one spec, one wins. */
  #starting: Promise<unknown> = Promise.resolve();

  constructor(parts: SessionRunsParts) {
    this.#parts = parts;
    this.#reader = new SessionReader(parts, () => this.#attachedEngine);
  }

  attach(engine: TreeEngine): void {
    this.#engine = engine;
  }

  start(options: StartSessionOptions): Promise<SessionAnswer> {
    const started = this.#starting.then(() => this.#start(options));
    this.#starting = started.catch(() => undefined);
    return started;
  }

  async next(session_id: string, request: NextRequest, by: SessionCaller): Promise<SessionAnswer> {
    const { last_step_result, heartbeat = false, context_usage_pct } = request;
    const state = await this.#find(session_id);
    if (state === null) return rejectionWithoutSession('NO_ACTIVE_SESSION');
    const { case_id } = state;
    const given = last_step_result !== undefined && last_step_result !== null;
    const report = given ? receiveReport(last_step_result, case_id) : null;
    const pct = validatePercentage(context_usage_pct);
    if ((given && report === null) || pct === undefined) {
      return rejectionAnswer(state.session, 'VALIDATION_ERROR', [
        pct === undefined ? 'context_usage_pct' : 'last_step_result',
      ]);
    }
    const command: SessionCommand = {
      name: 'next',
      report: report === null ? null : artifactRef(report.artifact),
      proof_sha256: report?.proof_sha256 ?? null,
      heartbeat,
      context_usage_pct: pct,
      spec: this.#parts.specs.readFact(state.session.spec_file),
    };
    return this.#command({ session_id, command, by }, report === null ? [] : [report.artifact]);
  }

  replay(session_id: string, by: SessionCaller): Promise<SessionAnswer> {
    return this.#command({ session_id, command: { name: 'replay' }, by });
  }

  heartbeat(
    session_id: string,
    request: { readonly context_usage_pct?: number; readonly estimated_tokens_used?: number },
    by: SessionCaller,
  ): Promise<SessionAnswer> {
    const context_usage_pct = validatePercentage(request.context_usage_pct);
    const { estimated_tokens_used: tokens = null } = request;
    if (context_usage_pct === undefined || (tokens !== null && (!Number.isSafeInteger(tokens) || tokens < 0))) {
      return this.#reject(session_id, 'VALIDATION_ERROR', ['context_usage_pct or estimated_tokens_used']);
    }
    const command: SessionCommand = { name: 'heartbeat', context_usage_pct, estimated_tokens_used: tokens };
    return this.#command({ session_id, command, by });
  }

  verify(session_id: string, { step_id }: { readonly step_id: string }, by: SessionCaller): Promise<SessionAnswer> {
    return this.#command({ session_id, command: { name: 'verify', step_id }, by });
  }

  review(
    session_id: string,
    { phase_id, step_id }: { readonly phase_id: string; readonly step_id: string },
    by: SessionCaller,
  ): Promise<SessionAnswer> {
    return this.#command({ session_id, command: { name: 'review', phase_id, step_id }, by });
  }

  async pause(session_id: string, { reason }: { readonly reason?: string }, by: SessionCaller): Promise<SessionAnswer> {
    return this.#commandWithNote(session_id, reason, by, (note) => ({ name: 'pause', reason: null, ...note }));
  }

  async resume(
    session_id: string,
    request: Parameters<Sessions['resume']>[1],
    by: SessionCaller,
  ): Promise<SessionAnswer> {
    const state = await this.#find(session_id);
    if (state === null) return rejectionWithoutSession('NO_ACTIVE_SESSION');
    const { force = false, acknowledge = null } = request;
    const spec = this.#parts.specs.readFact(state.session.spec_file);
    return this.#command({ session_id, command: { name: 'resume', force, acknowledge, spec }, by });
  }

  end(session_id: string, request: OverrideRequest, by: SessionCaller): Promise<SessionAnswer> {
    const { reason_code, reason_detail } = request;
    const own = platformDetail(reason_detail);
    return this.#commandWithNote(session_id, own === null ? reason_detail : null, by, (note) => {
      return { name: 'end', reason_code, reason_detail: own, ...note };
    });
  }

  async rebase(
    session_id: string,
    { spec: given, force = false }: { readonly spec: string | SessionSpec; readonly force?: boolean },
    by: SessionCaller,
  ): Promise<SessionAnswer> {
    const state = await this.#find(session_id);
    if (state === null) return rejectionWithoutSession('NO_ACTIVE_SESSION');
    const { policy } = await this.#parts.policyCache.current();
    const { spec, file: spec_file } = this.#parts.specs.load(given, new Set(policy.lanes.keys()));
    const bytes = Buffer.from(canonicalJson(spec));
    const artifact: Artifact = { kind: 'session_spec', case_id: state.case_id, bytes };
    const command: SessionCommand = { name: 'rebase', spec: artifactRef(artifact), spec_file, force };
    return this.#command({ session_id, command, by }, [artifact]);
  }

  waive(
    session_id: string,
    request: OverrideRequest & { readonly phase_id: string },
    by: SessionCaller,
  ): Promise<SessionAnswer> {
    const { phase_id, reason_code, reason_detail } = request;
    return this.#commandWithNote(session_id, reason_detail, by, (note) => {
      return { name: 'waive', phase_id, reason_code, reason_detail: null, ...note };
    });
  }

  async status(session_id: string): Promise<SessionAnswer> {
    const state = await this.#find(session_id);
    return state === null ? rejectionWithoutSession('NO_ACTIVE_SESSION') : sessionAnswer(state.session);
  }

  async prepare(session_id: string, task_id?: string): Promise<TaskDetails | null> {
    const state = await this.#find(session_id);
    return state === null ? null : findTaskDetails(state.session, task_id);
  }

  readonly list: Sessions['list'] = (spec_id, control) => this.#reader.list(spec_id, control);

  /** Rejects calls that wait for an answer. */
  close(): void {
    const closed = new RunError({ code: 'CLOSED', message: 'this process has released the session' });
    for (const released of this.#waiting) released.reject(closed);
  }

  get #attachedEngine(): TreeEngine {
    if (this.#engine === null) throw new InvariantError('the sessions have no engine yet');
    return this.#engine;
  }

  async #start(options: StartSessionOptions): Promise<SessionAnswer> {
    const { policyCache, ids, specs } = this.#parts;
    if (toSessionRole(options.by.role) === 'observer') return rejectionWithoutSession('AUTHORIZATION', ['start']);
    const pinned = await policyCache.current();
    const material = specs.load(options.spec, new Set(pinned.policy.lanes.keys()));
    const active = await this.#reader.findActive(material.spec.id);
    if (active !== null) {
      const { idempotencyKey, force = false, by } = options;
      if (idempotencyKey !== undefined && active.idempotency_key === idempotencyKey) {
        const { input, materials } = createStartSessionInput(active.session_id, options, material, pinned, ids);
        const parts = { engine: this.#attachedEngine, store: this.#parts.store };
        await requireSameStart(parts, input, materials, options.correlation);
        return sessionAnswer(active);
      }
      if (!force) return rejectionAnswer(active, 'SPEC_SESSION_EXISTS', [active.session_id, active.status]);
      const overrideRequest = { reason_code: 'operator_override', reason_detail: FORCE_REPLACED } as const;
      const ended = await this.end(active.session_id, overrideRequest, by);
      if (!ended.success) return ended;
    }
    const session_id = ids.draw(SESSION_PREFIX);
    const { input, materials } = createStartSessionInput(session_id, options, material, pinned, ids);
    return this.#submit(session_id, input, materials);
  }

  #find(session_id: string): Promise<LedgerSession | null> {
    return this.#reader.find(session_id);
  }

  async #reject(session_id: string, code: SessionErrorCode, details: readonly string[]): Promise<SessionAnswer> {
    const state = await this.#find(session_id);
    return state === null
      ? rejectionWithoutSession('NO_ACTIVE_SESSION')
      : rejectionAnswer(state.session, code, details);
  }

  /** A command that a person may explain in a text, which is an artifact of the case (C90). */
  async #commandWithNote(
    session_id: string,
    text: string | null | undefined,
    by: SessionCaller,
    commandOf: (note: Note['references']) => SessionCommand,
  ): Promise<SessionAnswer> {
    const state = await this.#find(session_id);
    if (state === null) return rejectionWithoutSession('NO_ACTIVE_SESSION');
    const note = createDetailNote(text, state.case_id);
    const command = commandOf(note?.references ?? {});
    if (note === null) return rejectionAnswer(state.session, 'VALIDATION_ERROR', [command.name]);
    return this.#command({ session_id, command, by }, note.materials);
  }

  async #command(commandRequest: CommandRequest, materials: readonly Artifact[] = []): Promise<SessionAnswer> {
    const { session_id, command: given, by } = commandRequest;
    const state = await this.#find(session_id);
    if (state === null) return rejectionWithoutSession('NO_ACTIVE_SESSION');
    // A command that the ledger cannot record is invalid: an id with a space, or text that is too long or not Unicode.
    if (!isRecordable(given)) return rejectionAnswer(state.session, 'VALIDATION_ERROR', [given.name]);
    const command = hashForeignIds(given, state.session);
    const input_id = this.#parts.ids.draw('inp_');
    const caller = toRecordedCaller(by);
    // A closed session takes no input. It still reports its state and its last answer.
    if (state.session.status === 'completed' || state.session.status === 'ended') {
      const time = new Date(this.#parts.clock.now()).toISOString();
      return this.#addStepProof(
        session_id,
        answerClosedSession(state.session, command, { ...caller, time, input_id }, materials),
      );
    }
    const input = { kind: 'session', feature: 'sessions', run_id: session_id, input_id, by: caller, command } as const;
    return this.#submit(session_id, input, materials);
  }

  async #submit(session_id: string, input: NewInput, materials: readonly Artifact[]): Promise<SessionAnswer> {
    const submission: Submission = { input, materials, rememberInputId: false, expectsResponse: true };
    const released = ignoreRejection(createDeferred<never>());
    this.#waiting.add(released);
    try {
      const { response = null } = await this.#attachedEngine.submit(session_id, submission);
      const answer = await Promise.race([response, released.promise]);
      if (answer === null) return await this.#reject(session_id, 'INVALID_STATE_TRANSITION', []);
      return this.#addStepProof(session_id, parseOwnJson(answer) as SessionAnswer);
    } finally {
      this.#waiting.delete(released);
    }
  }

  /** The step proof is part of the answer only; it is never stored. */
  #addStepProof(session_id: string, answer: SessionAnswer): SessionAnswer {
    const step = answer.data?.next_step;
    if (answer.data == null || step?.issue === undefined) return answer;
    const { issue, ...rest } = step;
    const step_proof = stepProof(this.#parts.secrets, session_id, step.step_id, issue);
    return { ...answer, data: { ...answer.data, next_step: { ...rest, step_proof } } };
  }
}
