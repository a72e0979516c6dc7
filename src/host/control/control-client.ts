import type { Static, TSchema } from 'typebox';
import { connectTo, type SocketConnection } from '../../system/network/unix-socket.js';
import { parseOwnJson } from '../../core/contract/json.js';
import type { StepResponse } from '../../core/contract/run/response.js';
import type { TraceCarrier } from '../../core/contract/trace-context.js';
import { InvariantError, LedgerError, RunError } from '../../core/errors.js';
import { omitUndefined } from '../../core/omit-undefined.js';
import type { AgentRun, RunEnding, SubmitOptions } from '../../runtime/agents/agent-run.js';
import { splitLines } from './split-lines.js';
import {
  asInstance,
  CONTROL_OPERATIONS,
  ControlResponse,
  fromWireError,
  parseMessage,
  RESPONSE_BYTES_MAX,
  type ControlOperation,
  type RequestMembersOf,
  type ResultOf,
} from './control-messages.js';
import type { ControlledOperations } from './control-server.js';
import { createDeferred, ignoreRejection, type DeferredPromise } from '../../runtime/deferred.js';
import type { HighRiskRun } from '../../runtime/high-risk-options.js';
import { payloadBytes } from '../../runtime/agents/caller-input.js';
import type { RequestMembers, RequestSender } from '../../runtime/host-feature.js';

/** Interval of pings, in milliseconds: the server closes a silent connection. */
const PING_MS = 30_000;
/** Timeout in ms of requests that the server should answer at once. */
const RESPONSE_TIMEOUT_MS = 60_000;

/** Client of the process that holds the writer lock of a home. Its operations throw what they throw in that process. */
export class ControlClient implements ControlledOperations, RequestSender {
  readonly #connection: SocketConnection;
  readonly #contract: string | null;
  readonly #pending = new Map<number, DeferredPromise<unknown>>();
  readonly #ping: NodeJS.Timeout;
  #lastId = 0;
  #isClosed = false;

  /** @param contract the contract folder by which the other process must judge, or null for any */
  constructor(connection: SocketConnection, contract: string | null) {
    this.#connection = connection;
    this.#contract = contract;
    this.#ping = setInterval(() => void this.#callWithTimeout('ping', {}).catch(() => undefined), PING_MS);
    this.#ping.unref();
    void this.#listen();
  }

  /** Whether the other process accepts work. A process that is ending or has ended does not. */
  async isReady(): Promise<boolean> {
    try {
      await this.#callWithTimeout('ping', {});
      return true;
    } catch (error) {
      if (error instanceof RunError && error.code === 'CLOSED') return false;
      throw error;
    }
  }

  /** Starts an agent run in the other process, attached to this connection. */
  readonly startAgent: ControlledOperations['startAgent'] = async (options) => {
    const { ending, ...ids } = await this.#callWithTimeout('start_agent', { contract: this.#contract, options });
    return this.#createHandle(ids, ending);
  };

  /**
   * Starts a promotion in the other process. It continues when this connection closes. Without the response timeout:
   * that process first searches the content that the run would carry over.
   */
  readonly promote: ControlledOperations['promote'] = async (options) =>
    this.#follow(await this.#call('promote', { contract: this.#contract, options: withoutTrace(options) }));

  /** Starts an export like a promotion. The destination must be an absolute path. */
  readonly export: ControlledOperations['export'] = async (options) =>
    this.#follow(await this.#call('export', { contract: this.#contract, options: withoutTrace(options) }));

  /** Submits a person's ballot. The runs that it releases continue in the other process. */
  readonly approve: ControlledOperations['approve'] = async (ballot) => (await this.#call('vote', { ballot })).results;

  readonly resolve: ControlledOperations['resolve'] = async (resolution) => {
    await this.#call('resolve', { resolution });
  };

  readonly decide: ControlledOperations['decide'] = (request) =>
    this.#call('decide', { contract: this.#contract, request });

  readonly report: ControlledOperations['report'] = async (report) => {
    await this.#call('report', { report });
  };

  readonly readRequest: ControlledOperations['readRequest'] = async (reading) =>
    (await this.#call('read_request', { reading })).request;

  readonly erase: ControlledOperations['erase'] = (erasure) => this.#call('erase', { erasure });

  readonly remoteAgents: ControlledOperations['remoteAgents'] = {
    start: async ({ trace, ...rest }) => {
      const options = { ...rest, ...traceMember(trace), link: 'remote' as const };
      const { run_id, ending } = await this.#callWithTimeout('start_agent', { contract: this.#contract, options });
      return { run_id, ending };
    },
    findKeyed: async (owner) => (await this.#call('find_keyed', { owner })).found,
    findInput: async (places) => (await this.#call('find_input', { places })).found,
    find: async (run_id) => (await this.#call('find_remote', { run_id })).found,
    submit: async (run_id, raw, options) => {
      const { response } = await this.#call('submit_remote', { run_id, ...encodeProposal(raw, options) });
      return parseOwnJson(response) as StepResponse;
    },
    end: async (run_id) => {
      await this.#call('end_remote', { run_id });
    },
  };

  /** Closes the connection. The other process interrupts agent runs of this connection that have not ended. */
  async close(): Promise<void> {
    await this.#connection.end();
  }

  #follow({ ending, ...ids }: ResultOf<'promote'>): HighRiskRun {
    return { ...ids, finished: this.#trackEnding(ids.run_id, ending).promise };
  }

  #createHandle(ids: Pick<AgentRun, 'run_id' | 'root_run_id' | 'correlation_id'>, ended: RunEnding | null): AgentRun {
    const { run_id } = ids;
    const finished = this.#trackEnding(run_id, ended);
    const respond = async (raw: string | Uint8Array, options?: SubmitOptions): Promise<string> => {
      const responded = await this.#call('respond', { run_id, ...encodeProposal(raw, options) });
      // Resolved before the response is returned: its caller may check at once whether it should send another proposal.
      if (responded.ending !== null) finished.resolve(responded.ending);
      return responded.response;
    };
    return {
      ...ids,
      respond,
      submit: async (raw, options) => parseOwnJson(await respond(raw, options)) as StepResponse,
      end: () => this.#call('end', { run_id }),
      cancel: (reason) => this.#call('cancel', { run_id, reason }),
      interrupt: () => this.#call('interrupt', { run_id }),
      finished: finished.promise,
    };
  }

  /** The end of a run: already known, or requested. */
  #trackEnding(run_id: string, ended: RunEnding | null): DeferredPromise<RunEnding> {
    const finished = ignoreRejection(createDeferred<RunEnding>());
    if (ended === null) {
      this.#call('finished', { run_id }).then(
        (ending) => finished.resolve(ending),
        (error: unknown) => finished.reject(error),
      );
    } else finished.resolve(ended);
    return finished;
  }

  /** Sends a request that needs no work there: a timeout means that the process is gone. */
  async #callWithTimeout<Op extends ControlOperation>(op: Op, members: RequestMembersOf<Op>): Promise<ResultOf<Op>> {
    const timer = setTimeout(() => this.#connection.destroy(), RESPONSE_TIMEOUT_MS);
    try {
      return await this.#call(op, members);
    } finally {
      clearTimeout(timer);
    }
  }

  async #call<Op extends ControlOperation>(op: Op, members: RequestMembersOf<Op>): Promise<ResultOf<Op>> {
    return (await this.request({ op, ...members }, CONTROL_OPERATIONS[op].result)) as ResultOf<Op>;
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
  return { payload, ...omitUndefined({ input_id: inputId }), ...traceMember(trace) };
}

/**
 * Connects to the process that serves the control socket at `path`.
 * @param contract the contract folder by which it must judge, or null for any
 * @returns null if no process serves it
 * @throws LedgerError LEDGER_LOCKED if it cannot be reached, e.g. because it belongs to another user
 */
export async function connectControl(path: string, contract: string | null): Promise<ControlClient | null> {
  try {
    const connection = await connectTo(path);
    return connection === null ? null : new ControlClient(connection, contract);
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
