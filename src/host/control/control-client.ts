import type { Static, TSchema } from 'typebox';
import { connectTo, type SocketConnection } from '../../system/network/unix-socket.js';
import { parseOwnJson } from '../../core/contract/json.js';
import type { StepResponse } from '../../core/contract/run/response.js';
import type { TraceCarrier } from '../../core/contract/trace-context.js';
import { InvariantError, LedgerError, RunError } from '../../core/errors.js';
import type { AgentRun, RunEnding, SubmitOptions } from '../../runtime/agents/agent-run.js';
import type { ActionReport } from '../../runtime/agents/action-reports.js';
import type { ActionDecision, DecisionRequest } from '../../runtime/agents/decision-request.js';
import type { ApprovedRequest } from '../../runtime/ledger/pending-approvals.js';
import { splitLines } from './split-lines.js';
import type { ReadRequestOptions } from '../../runtime/content/read-content.js';
import {
  RESPONSE_BYTES_MAX,
  ControlResponse,
  DecideResult,
  EraseResult,
  EndingResult,
  FindInputResult,
  FindKeyedResult,
  FindRemoteResult,
  StartHighRiskResult,
  asInstance,
  EmptyResult,
  parseMessage,
  ReadRequestResult,
  RespondResult,
  StartAgentResult,
  SubmitRemoteResult,
  VoteResult,
  type ControlAgentOptions,
  type ControlRequest,
} from './control-messages.js';
import { fromWireError } from './control-errors.js';
import type { EraseOptions, ErasureReport } from '../../runtime/ledger/erase-case.js';
import { createDeferred, ignoreRejection, type DeferredPromise } from '../../runtime/deferred.js';
import type {
  Ballot,
  BallotResult,
  ExportOptions,
  HighRiskRun,
  PromoteOptions,
  Resolution,
} from '../../runtime/high-risk-options.js';
import { payloadBytes } from '../../runtime/agents/caller-input.js';
import type { RemoteAgents } from '../../runtime/agents/remote-agents.js';
import type { RequestMembers, RequestSender } from '../../runtime/host-feature.js';

/** Interval of pings, in milliseconds: the server closes a silent connection. */
const PING_MS = 30_000;
/** Timeout in ms of requests that the server should answer at once. */
const RESPONSE_TIMEOUT_MS = 60_000;

type RequestBody = ControlRequest extends infer Request
  ? Request extends unknown
    ? Omit<Request, 'id'>
    : never
  : never;

/** Client of the process that holds the writer lock of a home. */
export class ControlClient implements RequestSender {
  readonly #connection: SocketConnection;
  readonly #pending = new Map<number, DeferredPromise<unknown>>();
  readonly #ping: NodeJS.Timeout;
  #lastId = 0;
  #isClosed = false;

  constructor(connection: SocketConnection) {
    this.#connection = connection;
    this.#ping = setInterval(
      () => void this.#requestWithTimeout({ op: 'ping' }, EmptyResult).catch(() => undefined),
      PING_MS,
    );
    this.#ping.unref();
    void this.#listen();
  }

  /** Whether the other process accepts work. A process that is ending or has ended does not. */
  async isReady(): Promise<boolean> {
    try {
      await this.#requestWithTimeout({ op: 'ping' }, EmptyResult);
      return true;
    } catch (error) {
      if (error instanceof RunError && error.code === 'CLOSED') return false;
      throw error;
    }
  }

  /**
   * Starts an agent run in the other process, attached to this connection.
   * @param contract the contract folder that the other process must use, or null for any
   * @throws what `startAgent` throws; RunError CLOSED if the other process is gone
   */
  async startAgent(options: ControlAgentOptions, contract: string | null): Promise<AgentRun> {
    const { ending, ...ids } = await this.#requestWithTimeout(
      { op: 'start_agent', contract, options },
      StartAgentResult,
    );
    return this.#createHandle(ids, ending);
  }

  /** The remote agent runs of the home; `contract` as in `startAgent`. */
  remoteAgents(contract: string | null): RemoteAgents {
    return {
      start: async ({ scope, trace, ...options }) => {
        const request = {
          ...options,
          ...traceMember(trace),
          ...(scope === undefined ? {} : { scope: { ...scope } }),
          link: 'remote' as const,
        };
        const { run_id, ending } = await this.#requestWithTimeout(
          { op: 'start_agent', contract, options: request },
          StartAgentResult,
        );
        return { run_id, ending };
      },
      findKeyed: async (owner) => (await this.#request({ op: 'find_keyed', owner }, FindKeyedResult)).found,
      findInput: async (places) =>
        (await this.#request({ op: 'find_input', places: [...places] }, FindInputResult)).found,
      find: async (run_id) => (await this.#request({ op: 'find_remote', run_id }, FindRemoteResult)).found,
      submit: async (run_id, raw, options) => {
        const request = { op: 'submit_remote', run_id, ...encodeProposal(raw, options) } as const;
        return parseOwnJson((await this.#request(request, SubmitRemoteResult)).response) as StepResponse;
      },
      end: async (run_id) => {
        await this.#request({ op: 'end_remote', run_id }, EmptyResult);
      },
    };
  }

  /**
   * Starts a promotion in the other process. It continues when this connection closes; `contract` as in `startAgent`.
   */
  promote(starter: PromoteOptions, contract: string | null): Promise<HighRiskRun> {
    const { sources, confidentiality, ...options } = withoutTrace(starter);
    const lists = {
      ...(sources === undefined ? {} : { sources: [...sources] }),
      ...(confidentiality === undefined ? {} : { confidentiality: [...confidentiality] }),
    };
    return this.#startHighRisk({ op: 'promote', contract, options: { ...options, ...lists } });
  }

  /** Starts an export like a promotion. The destination must be an absolute path. */
  export(starter: ExportOptions, contract: string | null): Promise<HighRiskRun> {
    return this.#startHighRisk({ op: 'export', contract, options: withoutTrace(starter) });
  }

  /**
   * Submits a person's ballot. The runs that it releases continue in the other process.
   * @throws what `approve` throws
   */
  async approve(ballot: Ballot): Promise<readonly BallotResult[]> {
    const { results } = await this.#request(
      { op: 'vote', ballot: { ...ballot, digests: [...ballot.digests] } },
      VoteResult,
    );
    return results;
  }

  /** @throws what `resolve` throws */
  async resolve(resolution: Resolution): Promise<void> {
    await this.#request({ op: 'resolve', resolution }, EmptyResult);
  }

  /** `contract` as in `startAgent`. @throws what `decide` throws */
  decide(request: DecisionRequest, contract: string | null): Promise<ActionDecision> {
    return this.#request({ op: 'decide', contract, request }, DecideResult);
  }

  /** @throws what `report` throws */
  async report(report: ActionReport): Promise<void> {
    await this.#request({ op: 'report', report }, EmptyResult);
  }

  /** @throws what `readRequest` throws */
  async readRequest(reading: ReadRequestOptions): Promise<ApprovedRequest | null> {
    return (await this.#request({ op: 'read_request', reading }, ReadRequestResult)).request;
  }

  /** @throws what `erase` throws */
  erase(erasure: EraseOptions): Promise<ErasureReport> {
    return this.#request({ op: 'erase', erasure }, EraseResult);
  }

  /** Closes the connection. The other process interrupts agent runs of this connection that have not ended. */
  async close(): Promise<void> {
    await this.#connection.end();
  }

  /** Without the response timeout: the other process first searches the content that the run would carry over. */
  async #startHighRisk(request: Extract<RequestBody, { op: 'promote' | 'export' }>): Promise<HighRiskRun> {
    const { ending, ...ids } = await this.#request(request, StartHighRiskResult);
    return { ...ids, finished: this.#trackEnding(ids.run_id, ending).promise };
  }

  #createHandle(ids: Pick<AgentRun, 'run_id' | 'root_run_id' | 'correlation_id'>, ended: RunEnding | null): AgentRun {
    const { run_id } = ids;
    const finished = this.#trackEnding(run_id, ended);
    const ending = (request: RequestBody) => this.#request(request, EndingResult);
    const respond = async (raw: string | Uint8Array, options?: SubmitOptions): Promise<string> => {
      const responded = await this.#request({ op: 'respond', run_id, ...encodeProposal(raw, options) }, RespondResult);
      // Resolved before the response is returned: its caller may check at once whether it should send another proposal.
      if (responded.ending !== null) finished.resolve(responded.ending);
      return responded.response;
    };
    return {
      ...ids,
      respond,
      submit: async (raw, options) => parseOwnJson(await respond(raw, options)) as StepResponse,
      end: () => ending({ op: 'end', run_id }),
      cancel: (reason) => ending({ op: 'cancel', run_id, reason }),
      interrupt: () => ending({ op: 'interrupt', run_id }),
      finished: finished.promise,
    };
  }

  /** The end of a run: already known, or requested. */
  #trackEnding(run_id: string, ended: RunEnding | null): DeferredPromise<RunEnding> {
    const finished = ignoreRejection(createDeferred<RunEnding>());
    if (ended === null) this.#awaitEnding(run_id, finished);
    else finished.resolve(ended);
    return finished;
  }

  #awaitEnding(run_id: string, finished: DeferredPromise<RunEnding>): void {
    this.#request({ op: 'finished', run_id }, EndingResult).then(
      (ending) => finished.resolve(ending),
      (error: unknown) => finished.reject(error),
    );
  }

  /** Sends a request that needs no work there: a timeout means that the process is gone. */
  async #requestWithTimeout<T extends TSchema>(request: RequestBody, schema: T): Promise<Static<T>> {
    const timer = setTimeout(() => this.#connection.destroy(), RESPONSE_TIMEOUT_MS);
    try {
      return await this.#request(request, schema);
    } finally {
      clearTimeout(timer);
    }
  }

  #request<T extends TSchema>(body: RequestBody, schema: T): Promise<Static<T>> {
    return this.request(body, schema);
  }

  /** Sends any request, also one that a feature answers. @throws what the other process answers */
  async request<T extends TSchema>(body: RequestMembers, schema: T): Promise<Static<T>> {
    if (this.#isClosed) throw closedError();
    const id = (this.#lastId += 1);
    const response = createDeferred<unknown>();
    this.#pending.set(id, response);
    // A failure to send shows as the end of the connection, which settles the answer.
    this.#connection.send(`${JSON.stringify({ id, ...body })}\n`).catch(() => undefined);
    const result = asInstance(schema, await response.promise);
    if (result === null) throw new InvariantError('the process that has this home gave an answer of another shape');
    return result;
  }

  async #listen(): Promise<void> {
    let why: unknown = null;
    try {
      for await (const line of splitLines(this.#connection.chunks, RESPONSE_BYTES_MAX)) this.#receive(line);
    } catch (error) {
      why = error;
    }
    this.#isClosed = true;
    clearInterval(this.#ping);
    for (const response of this.#pending.values()) response.reject(why ?? closedError());
    this.#pending.clear();
    this.#connection.destroy();
  }

  #receive(line: Uint8Array): void {
    const response = parseMessage(ControlResponse, line);
    if (response === null) throw new InvariantError('the process that has locked this home sent an invalid answer');
    if (!response.ok && response.id === null) throw fromWireError(response.error);
    const request = this.#pending.get(response.id ?? 0);
    this.#pending.delete(response.id ?? 0);
    if (response.ok) request?.resolve(response.result);
    else request?.reject(fromWireError(response.error));
  }
}

/** Such a run begins a trace of its own in the other process. */
const withoutTrace = <T extends { readonly trace?: TraceCarrier }>(options: T): Omit<T, 'trace'> =>
  Object.fromEntries(Object.entries(options).filter(([name]) => name !== 'trace')) as unknown as Omit<T, 'trace'>;

/** The other process needs no more than `traceparent`. */
const traceMember = (trace: TraceCarrier | undefined) =>
  trace === undefined ? {} : { trace: { traceparent: trace.traceparent } };

function encodeProposal(raw: string | Uint8Array, { inputId, trace }: SubmitOptions = {}) {
  const payload = Buffer.from(payloadBytes(raw)).toString('base64');
  return { payload, ...(inputId === undefined ? {} : { input_id: inputId }), ...traceMember(trace) };
}

/**
 * Connects to the process that serves the control socket at `path`.
 * @returns null if no process serves it
 * @throws LedgerError LEDGER_LOCKED if it cannot be reached, e.g. because it belongs to another user
 */
export async function connectControl(path: string): Promise<ControlClient | null> {
  try {
    const connection = await connectTo(path);
    return connection === null ? null : new ControlClient(connection);
  } catch (cause) {
    throw new LedgerError({
      code: 'LEDGER_LOCKED',
      message: `another process has this home, and its control socket ${path} cannot be reached`,
      cause,
    });
  }
}

const closedError = (): RunError =>
  new RunError({
    code: 'CLOSED',
    message: 'the process that has this home has ended; runs through it end as INTERRUPTED when it is opened again',
  });
