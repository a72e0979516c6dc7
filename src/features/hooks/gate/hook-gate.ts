// The gate for coding agents: it decides the calls of their own tools, and records what they report of the outcomes.
//
// Invariants:
//   G1. A call is allowed only by a durable decision. Whatever fails, the answer is a denial.
//   G2. Nothing of an event is recorded before its secrets are removed.
//   G3. A decision waits for no report of another call.

import { type JsonObject, canonicalJson } from '../../../core/contract/json.js';
import { DEFAULT_SECRETS, type SecretPattern } from '../../../core/contract/policy/secret-patterns.js';
import { RunError, usageError } from '../../../core/errors.js';
import { DIALECTS } from '../dialects.js';
import type { HookReply } from '../dialects/dialect.js';
import type { Client, HookAnswer, HookEvent, UndecidedReason } from '../hook-event.js';
import { totalOf, type UndecidedCounts } from '../client-files/count-files.js';
import { redactSecrets, recordableCall, type CallEvent, type RecordableCall } from './recordable-call.js';
import { RunRequests } from '../../../runtime/agents/run-requests.js';
import type { Policy } from '../../../core/policy/policy.js';
import { validateActor } from '../../../runtime/agents/caller-input.js';
import { rootRunIdOf } from '../../../core/contract/run/run-context.js';
import { createLruMap } from '../../../system/lru-map.js';
import { callDigest, HookCalls } from './hook-calls.js';
import {
  HookSessions,
  mainAgentOf,
  type ClientCheck,
  type HookCaller,
  type HookSessionState,
} from './hook-sessions.js';
import {
  closedReason,
  NO_SUBAGENT_REASON,
  denialReason,
  FAILURE_REASON,
  OTHER_PROJECT_REASON,
  pendingReason,
  SECRET_REASON,
  unsafeReason,
} from './hook-reasons.js';
import {
  writeMissingComparisons,
  type MissingComparison,
  type MissingComparisonCode,
} from '../comparisons/call-coverage.js';
import { inspectClient, type InspectedClient } from '../install/inspect-client.js';
import { NATIVE_TOOLS } from '../native-calls.js';
import { reportAction } from '../../../runtime/agents/action-reports.js';
import { defineExternalTool } from '../../../runtime/effects/define-effects.js';
import type { AddedTools } from '../../../runtime/effects/tools-of-features.js';
import type { HostAccess } from '../../../runtime/host-feature.js';
import { projectPath } from '../../../system/files/project-path.js';

export type { ClientCheck, HookCaller } from './hook-sessions.js';

/** What the hook itself reports of its client. */
export interface HookReport extends Pick<ClientCheck, 'version' | 'findings'> {
  readonly environment?: Readonly<Record<string, string | undefined>>;
}

/** The reply to an event. `unchecked`: the client must be checked first, and the event sent again with the result. */
export type HookResult =
  | {
      readonly reply: HookReply;
      readonly unchecked?: never;
      /** Why nothing is recorded of a call that is denied: the hook counts it. */
      readonly undecided?: UndecidedReason;
      /** The session has ended, and the counts of the hook are recorded. */
      readonly noted?: true;
    }
  | { readonly unchecked: true };

export class HookGate {
  readonly #host: HostAccess;
  readonly #requests: RunRequests;
  readonly #sessions: HookSessions;
  readonly #calls: HookCalls;
  /** How many undecided calls are recorded in each tree. It only saves requests. */
  readonly #undecided = createLruMap<number>(REMEMBERED_MAX);

  constructor(host: HostAccess) {
    const { agents, engine } = host;
    this.#host = host;
    this.#requests = new RunRequests(engine, host.clock);
    this.#sessions = new HookSessions(host);
    this.#calls = new HookCalls({
      ...{ agents, engine, requests: this.#requests },
      report: (report) => reportAction(host, report),
    });
  }

  /** Checks a client before its session begins, with the eyes of this process: the hook program may be another one. */
  check(client: Client, project: string, report: HookReport): Promise<ClientCheck> {
    return checkClient(client, project, report);
  }

  /**
   * Answers one event of a client. It never throws: a failure is a denial, and is logged.
   * @param event the event as the client has sent it, parsed strictly; null if it was not a JSON object
   * @param check what a check of the client has found; absent if none was made for this event
   * @param undecided what the hook has denied in this session without a decision
   */
  async answer(
    client: Client,
    event: JsonObject | null,
    caller: HookCaller,
    check?: ClientCheck,
    undecided?: UndecidedCounts,
  ): Promise<HookResult> {
    const dialect = DIALECTS[client];
    const read = event === null ? null : dialect.readEvent(event);
    if (event === null || read === null || hasSecretOrigin(read)) {
      this.#host.log.warn('a hook event cannot be read, and is denied', { client });
      return { reply: dialect.writeFailure(FAILURE_REASON, event), undecided: 'unreadable' };
    }
    try {
      const answer = await this.#decide({ client, event, read, caller, undecided }, check);
      return answer === null ? { unchecked: true } : { reply: dialect.writeReply(answer, event), ...noteOf(answer) };
    } catch (error) {
      this.#host.log.error('a hook event could not be decided, and is denied', { client, error });
      return { reply: dialect.writeFailure(FAILURE_REASON, event), undecided: 'failed' };
    }
  }

  /**
   * Lets a session go on that policy has ended after too many denials.
   * @throws RunError RUN_UNKNOWN for a run of no session; INVALID_STATE_TRANSITION if policy has not ended the session;
   *   UsageError for a role that is not for people
   */
  async reopen({ run, actor, role }: HookReopening): Promise<void> {
    const root = rootRunIdOf(run);
    const policy = (await this.#host.engine.peek(root))?.policy ?? null;
    if (policy === null) throw unknownSession(run);
    if (policy.roles.get(role)?.class !== 'human') throw usageError(`role: ${role} is not a role of people`);
    const found = await this.#sessions.reopen(root, validateActor(actor));
    if (found === null) throw unknownSession(run);
    if (found.state === 'closed') return;
    const message = `policy has not ended the session of run ${run}, so it cannot be reopened`;
    throw new RunError({ code: 'INVALID_STATE_TRANSITION', message });
  }

  /** @returns null if the client must be checked first */
  async #decide(incoming: Incoming, check: ClientCheck | undefined): Promise<HookAnswer | null> {
    const { client, read, caller } = incoming;
    if (read.kind === 'other') return NOTHING;
    let state = await this.#sessions.find(client, read, caller);
    const isNew = state.state === 'unchecked' || state.state === 'unsafe';
    if (isNew && read.kind !== 'session_end' && read.kind !== 'agent_end' && read.kind !== 'outcome') {
      if (check === undefined) return state.state === 'unsafe' && read.kind === 'call' ? unsafeAnswer(client) : null;
      const safe = check.findings.length === 0;
      if (!safe) this.#host.log.warn('a client could act without asking', { client, findings: check.findings });
      this.#logItems(client, 'a repository has what runs without a hook', check.repository);
      this.#logItems(client, 'a user has what runs without a hook', check.user);
      if (state.state === 'unchecked' || safe) state = await this.#sessions.open(client, read, { caller, safe, check });
    }
    if (state.state !== 'open') return read.kind === 'call' ? refusalOf(state, client) : NOTHING;
    await this.#recordUndecided(incoming, state.root);
    return this.#answerOpen(incoming, state.root);
  }

  #logItems(client: Client, message: string, items: readonly string[] = []): void {
    if (items.length > 0)
      this.#host.log.warn(message, { client, count: items.length, names: items.slice(0, NAMES_MAX) });
  }

  /** Each event has the counts again, so only others than the last ones are recorded. */
  async #recordUndecided({ client, read, undecided }: Incoming, root: string): Promise<void> {
    if (undecided === undefined || totalOf(undecided) === this.#undecided.get(root)) return;
    const of = { client, origin: { session: read.session, agent: null }, run_id: mainAgentOf(root) };
    await this.#calls.recordUndecided(of, undecided).catch(asEnded);
    this.#undecided.set(root, totalOf(undecided));
  }

  async #answerOpen(incoming: Incoming, root: string): Promise<HookAnswer> {
    const { read, caller } = incoming;
    switch (read.kind) {
      case 'call':
        return this.#answerCall(incoming, read, root);
      case 'outcome':
        await this.#report(incoming, read, root);
        return NOTHING;
      case 'session_end':
        // A session that waits for a vote may be resumed, and its request would end with it.
        if (await this.#waitsForVote(root)) return NOTHING;
        await this.#sessions.end(root);
        return incoming.undecided === undefined ? NOTHING : { decision: 'none', noted: true };
      case 'agent_end': {
        const run_id = read.agent === null ? null : await this.#sessions.knownAgentOf(root, read, caller);
        if (run_id !== null) await this.#sessions.endAgent(run_id);
        return NOTHING;
      }
      default:
        return NOTHING;
    }
  }

  async #waitsForVote(root: string): Promise<boolean> {
    for (const { context } of (await this.#host.engine.peek(root))?.runs ?? []) {
      const requests = await this.#requests.list(context.run_id);
      if (requests.some(({ status }) => status === 'open' || status === 'granted')) return true;
    }
    return false;
  }

  async #answerCall(incoming: Incoming, read: RequestedCall, root: string): Promise<HookAnswer> {
    const { client, caller } = incoming;
    const policy = await this.#policyOf(root);
    const run_id = await this.#sessions.agentOf(root, read, caller);
    if (run_id === null) return refusal(read.agent === null ? closedReason(root) : NO_SUBAGENT_REASON);
    const recordable = this.#recordable(incoming, read, policy);
    if (recordable === null) return refusal(SECRET_REASON, 'unreadable');
    const { call, event } = recordable;
    const of = { client, origin: read, call, digest: callDigest(read.call), run_id };
    const verdict = await this.#calls.decide(of, event).catch(asEnded);
    if (verdict === null) return refusal(closedReason(run_id));
    if (verdict.decision === 'allow') return verdict;
    const reason =
      verdict.decision === 'pending'
        ? pendingReason(verdict.trace)
        : denialReason(verdict.trace, call, policy, caller.lane);
    return { decision: verdict.decision, reason };
  }

  async #report(incoming: Incoming, read: OutcomeEvent, root: string): Promise<void> {
    const { client, caller } = incoming;
    const policy = await this.#policyOf(root);
    const run_id = await this.#sessions.knownAgentOf(root, read, caller);
    if (run_id === null) return;
    const recordable = this.#recordable(incoming, read, policy);
    const { call, event } = recordable ?? unrecordableCall(read);
    const of = { client, origin: read, call, digest: callDigest(read.call), run_id };
    const outcome = recordable?.outcome ?? { status: read.outcome.status, result: null };
    const match = recordable === null ? 'ungated' : await this.#calls.report(of, outcome);
    if (match !== 'recorded')
      this.#host.log.warn('a client reports an outcome that no allowed call waits for', {
        ...{ client, run_id, tool: call.tool, match },
      });
    // A client that executes what was not allowed is stopped by the denials of its run.
    if (match === 'ungated') await this.#calls.recordUngated(of, event).catch(asEnded);
  }

  #recordable({ client, event, caller: { project } }: Incoming, read: CallEvent, policy: Policy) {
    const resolve = (path: string, cwd: string): string => projectPath(path, project, cwd);
    return recordableCall(event, read, {
      ...{ dialect: DIALECTS[client], secrets: secretsOf(policy), resolve, project },
    });
  }

  async #policyOf(root: string): Promise<Policy> {
    const policy = (await this.#host.engine.peek(root))?.policy ?? null;
    if (policy === null) throw new RunError({ code: 'RUN_UNKNOWN', message: `there is no run tree ${root}` });
    return policy;
  }
}

declare module '../../../runtime/host-feature.js' {
  interface AddedMembers {
    /** The gate for coding agents; null without the option `hooks`. */
    readonly hooks: HookGate | null;
  }
  interface HostParts {
    readonly hookGate: HookGate;
  }
}

/** The tools of coding agents as tools whose caller executes them (U-08). */
export const openNativeTools = (): AddedTools => ({
  // What a coding agent reads belongs to its project: policy separates projects by their cases.
  tools: NATIVE_TOOLS.map((tool) => defineExternalTool({ ...tool, confidentiality: [] })),
  problems: [],
  close: () => Promise.resolve(),
});

/**
 * Checks a client, by the process that decides. The hook reports only what a process of the client knows: its version,
 * and the variables that name its folders.
 */
export async function checkClient(client: Client, project: string, report: HookReport): Promise<ClientCheck> {
  const { version, environment = {} } = report;
  const inspected = await inspectClient(client, { project, profile: 'gate', environment, version });
  const { findings, hook_sha256, repository, user } = inspected;
  const opening = findings.filter(({ severity }) => severity === 'opens').map(({ id }) => id);
  const notes = findings.filter(({ severity }) => severity === 'note');
  return {
    version,
    findings: [...new Set([...report.findings, ...opening])],
    ...(hook_sha256 === null ? {} : { hook_sha256 }),
    ...{ repository, user },
    uncompared: writeMissingComparisons(notes.flatMap(({ id }) => reasonOf(id, inspected))),
  };
}

/** What a note says of the calls of a session that may be missing. Notes without an effect on them are not here. */
const MISSING_BY_NOTE: Readonly<Record<string, MissingComparisonCode>> = {
  outcomes_unreported: 'outcomes',
  failures_unreported: 'failures',
  not_measured: 'version',
  folder_trust: 'trust',
  repository: 'repository',
  user_items: 'user',
  http_uncounted: 'http',
  folders: 'folders',
};

function reasonOf(id: string, items: InspectedClient): readonly MissingComparison[] {
  const code = MISSING_BY_NOTE[id.slice(id.indexOf('.') + 1)];
  if (code === undefined) return [];
  return code === 'repository' || code === 'user' ? [{ code, count: items[code].length }] : [{ code }];
}

interface Incoming {
  readonly client: Client;
  readonly event: JsonObject;
  readonly read: HookEvent;
  readonly caller: HookCaller;
  readonly undecided: UndecidedCounts | undefined;
}
type RequestedCall = Extract<HookEvent, { kind: 'call' }>;
type OutcomeEvent = Extract<HookEvent, { kind: 'outcome' }>;

/** A person who reopens a session. */
export interface HookReopening {
  /** A run of the session's newest tree. */
  readonly run: string;
  readonly actor: string;
  /** A role of class human. */
  readonly role: string;
}

const unknownSession = (run: string): RunError =>
  new RunError({ code: 'RUN_UNKNOWN', message: `${run} is no run of a session of a coding agent` });

/** A call of which nothing may be recorded but that there was one. It was denied. */
const unrecordableCall = ({ call }: OutcomeEvent): Pick<RecordableCall, 'call' | 'event'> => ({
  call: { tool: call.tool, input: {}, call_id: call.call_id },
  event: canonicalJson({ redacted: true }),
});

/** The client makes these ids itself, and they are recorded before the policy of the session is known. */
const hasSecretOrigin = ({ session, agent }: HookEvent): boolean =>
  redactSecrets({ session, agent }, DEFAULT_SECRETS).original_sha256 !== null;

const REMEMBERED_MAX = 4_096;
/** How many names are logged. */
const NAMES_MAX = 16;

const NOTHING: HookAnswer = { decision: 'none' };

const secretsOf = ({ secrets }: Policy): readonly SecretPattern[] => secrets ?? DEFAULT_SECRETS;

/** A call of which nothing is recorded. */
const refusal = (reason: string, undecided: UndecidedReason = 'refused'): HookAnswer => ({
  ...{ decision: 'deny', reason, undecided },
});

/** What the hook gets to know besides the reply. */
const noteOf = (answer: HookAnswer): Pick<HookResult & { unchecked?: never }, 'undecided' | 'noted'> => ({
  ...(answer.decision === 'deny' && answer.undecided !== undefined ? { undecided: answer.undecided } : {}),
  ...(answer.decision === 'none' && answer.noted === true ? { noted: true } : {}),
});

const unsafeAnswer = (client: Client): HookAnswer => refusal(unsafeReason(client));

/** The answer to a call of a session that is not open. */
function refusalOf(state: Exclude<HookSessionState, { state: 'open' }>, client: Client): HookAnswer {
  switch (state.state) {
    case 'closed':
      return refusal(closedReason(state.run_id));
    case 'other_project':
      return refusal(OTHER_PROJECT_REASON);
    default:
      return unsafeAnswer(client);
  }
}

/** The agent run has ended between two events. */
function asEnded(error: unknown): null {
  if (error instanceof RunError && error.code === 'RUN_ENDED') return null;
  throw error;
}
