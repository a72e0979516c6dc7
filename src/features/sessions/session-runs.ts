// Sessions on this ledger. Every call becomes an input of the session's tree. Answers get the step proof, which only
// this home can make (D10).

import { type JsonObject, parseOwnJson, canonicalJson } from '../../core/contract/json.js';
import { artifactRef, type Artifact } from '../../core/contract/artifact-ref.js';
import { RunError } from '../../core/errors.js';
import type { NewInput, Submission } from '../../engine/tree-engine.js';
import type { Note } from '../../runtime/agents/caller-input.js';
import { createDeferred, ignoreRejection, type DeferredPromise } from '../../runtime/deferred.js';
import type { HostAccess } from '../../runtime/host-feature.js';
import type { SessionAnswer } from './contract/session-answer.js';
import type { SessionCommand } from './contract/session-records.js';
import { applyCommand, toSessionRole } from './rules/apply-command.js';
import { sessionAnswer, rejectionAnswer, rejectionWithoutSession } from './rules/command-answer.js';
import type { SessionState } from './rules/session-state.js';
import { stepProof } from './rules/step-proof.js';
import type { CommandContext } from './rules/turn-builder.js';
import {
  createDetailNote,
  createStartSessionInput,
  FORCE_REPLACED,
  hashForeignIds,
  isRecordable,
  platformDetail,
  receiveReport,
  requireSameStart,
  toRecordedCaller,
  validatePercentage,
} from './session-inputs.js';
import { SESSION_PREFIX, SessionReader, findTaskDetails, isClosed, type LedgerSession } from './session-reader.js';
import type { SessionCaller, Sessions, StartSessionOptions, TaskDetails } from './sessions.js';
import { SpecSource } from './spec/spec-source.js';

declare module '../../runtime/host-feature.js' {
  interface HostParts {
    readonly sessions: Sessions;
  }
}

type SessionRunsParts = Pick<HostAccess, 'engine' | 'store' | 'policyCache' | 'ids' | 'clock' | 'pace' | 'secrets'>;

export class SessionRuns implements Sessions {
  readonly #parts: SessionRunsParts;
  readonly #specs = new SpecSource();
  readonly #reader: SessionReader;
  /** Calls that wait for an answer. */
  readonly #waiting = new Set<DeferredPromise<never>>();
  /** Starts run one after another: of two starts for one spec, one wins. */
  #starting: Promise<unknown> = Promise.resolve();

  constructor(parts: SessionRunsParts) {
    this.#parts = parts;
    this.#reader = new SessionReader(parts);
  }

  start(options: StartSessionOptions): Promise<SessionAnswer> {
    const started = this.#starting.then(() => this.#start(options));
    this.#starting = started.catch(() => undefined);
    return started;
  }

  readonly next: Sessions['next'] = (session_id, { last_step_result, heartbeat = false, context_usage_pct }, by) =>
    this.#inSession(session_id, (found) => {
      const given = last_step_result !== undefined && last_step_result !== null;
      const report = given ? receiveReport(last_step_result, found.case_id) : null;
      const pct = validatePercentage(context_usage_pct);
      if (pct === undefined) return rejectionAnswer(found.session, 'VALIDATION_ERROR', ['context_usage_pct']);
      if (given && report === null) return rejectionAnswer(found.session, 'VALIDATION_ERROR', ['last_step_result']);
      const command: SessionCommand = {
        name: 'next',
        report: report === null ? null : artifactRef(report.artifact),
        proof_sha256: report?.proof_sha256 ?? null,
        heartbeat,
        context_usage_pct: pct,
        spec: this.#specs.readFact(found.session.spec_file),
      };
      return this.#command(found, command, by, report === null ? [] : [report.artifact]);
    });

  readonly replay: Sessions['replay'] = (session_id, by) =>
    this.#inSession(session_id, (found) => this.#command(found, { name: 'replay' }, by));

  readonly heartbeat: Sessions['heartbeat'] = (session_id, request, by) =>
    this.#inSession(session_id, (found) => {
      const context_usage_pct = validatePercentage(request.context_usage_pct);
      const { estimated_tokens_used: tokens = null } = request;
      if (context_usage_pct === undefined || (tokens !== null && (!Number.isSafeInteger(tokens) || tokens < 0))) {
        return rejectionAnswer(found.session, 'VALIDATION_ERROR', ['context_usage_pct or estimated_tokens_used']);
      }
      return this.#command(found, { name: 'heartbeat', context_usage_pct, estimated_tokens_used: tokens }, by);
    });

  readonly verify: Sessions['verify'] = (session_id, { step_id }, by) =>
    this.#inSession(session_id, (found) => this.#command(found, { name: 'verify', step_id }, by));

  readonly review: Sessions['review'] = (session_id, { phase_id, step_id }, by) =>
    this.#inSession(session_id, (found) => this.#command(found, { name: 'review', phase_id, step_id }, by));

  readonly pause: Sessions['pause'] = (session_id, { reason }, by) =>
    this.#commandWithNote(session_id, reason, by, (note) => ({ name: 'pause', reason: null, ...note }));

  readonly resume: Sessions['resume'] = (session_id, { force = false, acknowledge = null }, by) =>
    this.#inSession(session_id, (found) => {
      const spec = this.#specs.readFact(found.session.spec_file);
      return this.#command(found, { name: 'resume', force, acknowledge, spec }, by);
    });

  readonly end: Sessions['end'] = (session_id, { reason_code, reason_detail }, by) => {
    const own = platformDetail(reason_detail);
    const text = own === null ? reason_detail : null;
    return this.#commandWithNote(session_id, text, by, (note) => {
      return { name: 'end', reason_code, reason_detail: own, ...note };
    });
  };

  readonly rebase: Sessions['rebase'] = (session_id, { spec: given, force = false }, by) =>
    this.#inSession(session_id, async (found) => {
      const { policy } = await this.#parts.policyCache.current();
      const { spec, file: spec_file } = this.#specs.load(given, new Set(policy.lanes.keys()));
      const bytes = Buffer.from(canonicalJson(spec));
      const artifact: Artifact = { kind: 'session_spec', case_id: found.case_id, bytes };
      return this.#command(found, { name: 'rebase', spec: artifactRef(artifact), spec_file, force }, by, [artifact]);
    });

  readonly waive: Sessions['waive'] = (session_id, { phase_id, reason_code, reason_detail }, by) =>
    this.#commandWithNote(session_id, reason_detail, by, (note) => {
      return { name: 'waive', phase_id, reason_code, reason_detail: null, ...note };
    });

  status(session_id: string): Promise<SessionAnswer> {
    return this.#inSession(session_id, ({ session }) => sessionAnswer(session));
  }

  async prepare(session_id: string, task_id?: string): Promise<TaskDetails | null> {
    const found = await this.#reader.find(session_id);
    return found === null ? null : findTaskDetails(found.session, task_id);
  }

  readonly list: Sessions['list'] = (spec_id, control) => this.#reader.list(spec_id, control);

  /** Rejects calls that wait for an answer. */
  close(): void {
    const closed = new RunError({ code: 'CLOSED', message: 'this process has released the session' });
    for (const released of this.#waiting) released.reject(closed);
  }

  async #start(options: StartSessionOptions): Promise<SessionAnswer> {
    const { policyCache, ids } = this.#parts;
    if (toSessionRole(options.by.role) === 'observer') return rejectionWithoutSession('AUTHORIZATION', ['start']);
    const pinned = await policyCache.current();
    const material = this.#specs.load(options.spec, new Set(pinned.policy.lanes.keys()));
    const active = await this.#reader.findActive(material.spec.id);
    if (active !== null) {
      const { idempotencyKey, force = false, by } = options;
      if (idempotencyKey !== undefined && active.idempotency_key === idempotencyKey) {
        const { input, materials } = createStartSessionInput(active.session_id, options, material, pinned, ids);
        await requireSameStart(this.#parts, input, materials, options.correlation);
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

  async #inSession(
    session_id: string,
    work: (found: LedgerSession) => SessionAnswer | Promise<SessionAnswer>,
  ): Promise<SessionAnswer> {
    const found = await this.#reader.find(session_id);
    return found === null ? rejectionWithoutSession('NO_ACTIVE_SESSION') : work(found);
  }

  /** A command that a person may explain in a text, which is an artifact of the case (C90). */
  #commandWithNote(
    session_id: string,
    text: string | null | undefined,
    by: SessionCaller,
    commandOf: (note: Note['references']) => SessionCommand,
  ): Promise<SessionAnswer> {
    return this.#inSession(session_id, (found) => {
      const note = createDetailNote(text, found.case_id);
      const command = commandOf(note?.references ?? {});
      if (note === null) return rejectionAnswer(found.session, 'VALIDATION_ERROR', [command.name]);
      return this.#command(found, command, by, note.materials);
    });
  }

  async #command(
    { session }: LedgerSession,
    given: SessionCommand,
    by: SessionCaller,
    materials: readonly Artifact[] = [],
  ): Promise<SessionAnswer> {
    const { session_id } = session;
    // A command that the ledger cannot record is invalid: an id with a space, or text that is too long or not Unicode.
    if (!isRecordable(given)) return rejectionAnswer(session, 'VALIDATION_ERROR', [given.name]);
    const command = hashForeignIds(given, session);
    const input_id = this.#parts.ids.draw('inp_');
    const caller = toRecordedCaller(by);
    // A closed session takes no input. It still reports its state and its last answer.
    if (isClosed(session)) {
      const time = new Date(this.#parts.clock.now()).toISOString();
      const answer = answerClosedSession(session, command, { ...caller, time, input_id }, materials);
      return this.#addStepProof(session_id, answer);
    }
    const input = { kind: 'session', feature: 'sessions', run_id: session_id, input_id, by: caller, command } as const;
    return this.#submit(session_id, input, materials);
  }

  async #submit(session_id: string, input: NewInput, materials: readonly Artifact[]): Promise<SessionAnswer> {
    const submission: Submission = { input, materials, rememberInputId: false, expectsResponse: true };
    const released = ignoreRejection(createDeferred<never>());
    this.#waiting.add(released);
    try {
      const { response = null } = await this.#parts.engine.submit(session_id, submission);
      const answer = await Promise.race([response, released.promise]);
      if (answer !== null) return this.#addStepProof(session_id, parseOwnJson(answer) as SessionAnswer);
      return await this.#inSession(session_id, ({ session }) => rejectionAnswer(session, 'INVALID_STATE_TRANSITION'));
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

/**
 * Answers a command to a closed session. Nothing of it is recorded.
 * @returns the state of the session; for its last report sent again, the answer to that report (C65)
 */
function answerClosedSession(
  session: SessionState,
  command: SessionCommand,
  source: Pick<CommandContext, 'actor' | 'role' | 'time' | 'input_id'>,
  [material]: readonly Artifact[],
): SessionAnswer {
  const vouch = { issue: { step_id: '', issue: 1, proof_sha256: '' }, evidence_intact: null };
  const work = { touched: [], busy: false, refuses_unmediated: false };
  const report =
    command.name === 'next' && command.report !== null && material !== undefined
      ? (parseOwnJson(Buffer.from(material.bytes).toString('utf8')) as JsonObject)
      : null;
  const turn = applyCommand(session, command, { ...source, vouch, work, report, new_spec: null });
  return turn.answer ?? rejectionAnswer(session, 'INVALID_STATE_TRANSITION');
}
