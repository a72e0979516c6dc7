import { setTimeout as delay } from 'node:timers/promises';
import type { SocketConnection } from '../../system/network/unix-socket.js';
import { CodedError, RunError, usageError } from '../../core/errors.js';
import { omitUndefined } from '../../core/omit-undefined.js';
import type { Log } from '../../engine/ports/log.js';
import type { AgentRun, RunEnding, SubmitOptions } from '../../runtime/agents/agent-run.js';
import type { ApprovedRequest } from '../../runtime/ledger/pending-approvals.js';
import { splitLines } from './split-lines.js';
import type { ReadRequestOptions } from '../../runtime/content/read-content.js';
import {
  asInstance,
  ControlRequest,
  RequestEnvelope,
  decodePayload,
  parseMessage,
  REQUEST_BYTES_MAX,
  type ControlAgentOptions,
  type ControlResponse,
} from './control-messages.js';
import { toWireError } from './control-errors.js';
import type { ActionReport } from '../../runtime/agents/action-reports.js';
import type { ActionDecision, DecisionRequest } from '../../runtime/agents/decision-request.js';
import type { EraseOptions, ErasureReport } from '../../runtime/ledger/erase-case.js';
import type {
  Ballot,
  BallotResult,
  ExportOptions,
  HighRiskRun,
  PromoteOptions,
  Resolution,
} from '../../runtime/high-risk-options.js';
import type { RemoteAgents } from '../../runtime/agents/remote-agents.js';
import type { AddedMembers, RequestHost } from '../../runtime/host-feature.js';
import type { RequestReaders } from '../feature-parts.js';

/** Limit of pending requests per connection; further ones are refused. */
export const PENDING_REQUESTS_MAX = 64;
/** Limit of runs that one connection may start. */
export const RUNS_PER_CONNECTION_MAX = 1_024;
const CLOSE_GRACE_MS = 1_000;
const UNREFERENCED = { ref: false } as const;

/** What a control session uses of its process. */
export interface ControlHost {
  startAgent(options: ControlAgentOptions): Promise<AgentRun>;
  promote(options: PromoteOptions): Promise<HighRiskRun>;
  export(options: ExportOptions): Promise<HighRiskRun>;
  approve(ballot: Ballot): Promise<readonly BallotResult[]>;
  resolve(resolution: Resolution): Promise<void>;
  decide(request: DecisionRequest): Promise<ActionDecision>;
  report(report: ActionReport): Promise<void>;
  readRequest(reading: ReadRequestOptions): Promise<ApprovedRequest | null>;
  erase(erasure: EraseOptions): Promise<ErasureReport>;
  readonly remoteAgents: RemoteAgents;
  readonly members: AddedMembers;
  /** The requests that features answer. */
  readonly requests: RequestReaders;
  /** The contract folder of this process, or null if its policy does not come from a folder. */
  readonly contract: string | null;
  readonly log: Log;
}

/** A request that conforms to its schema. */
interface ValidRequest {
  readonly id: number;
  readonly execute: () => Promise<unknown>;
}

interface ConnectionRun<Run> {
  readonly run: Run;
  ending: RunEnding | null;
}

/**
 * One connection to the control socket, with the agent runs that it has started. Remote runs and sessions belong to no
 * connection.
 */
export class ControlSession {
  readonly #connection: SocketConnection;
  readonly #host: ControlHost;
  readonly #refusal: RunError | null;
  readonly #agents = new Map<string, ConnectionRun<AgentRun>>();
  /** Promotions and exports: they continue when the connection closes. */
  readonly #highRisk = new Map<string, ConnectionRun<HighRiskRun>>();
  readonly #pending = new Set<Promise<void>>();
  #isClosed = false;

  /** @param refusal the answer to every request, or null to serve the connection */
  constructor(connection: SocketConnection, host: ControlHost, refusal: RunError | null) {
    this.#connection = connection;
    this.#host = host;
    this.#refusal = refusal;
  }

  /** Answers requests until the connection closes, and resolves when its runs have been interrupted. */
  async serve(): Promise<void> {
    try {
      for await (const line of splitLines(this.#connection.chunks, REQUEST_BYTES_MAX)) await this.#receive(line);
    } catch (error) {
      await this.#send({ id: null, ok: false, error: toWireError(error) });
    }
    await this.close();
  }

  /** Interrupts the agent runs that have not ended (D3), sends their last answers, and closes the connection. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#agents.values()].map(interrupt));
    // The remaining requests wait for a run that has ended, or for a client that does not read.
    await Promise.race([
      Promise.all(this.#pending),
      this.#connection.closed,
      delay(CLOSE_GRACE_MS, null, UNREFERENCED),
    ]);
    await this.#connection.end();
  }

  async #receive(line: Uint8Array): Promise<void> {
    const received = parseMessage(RequestEnvelope, line);
    const request = received === null ? null : await this.#parse(received);
    if (request === null) throw usageError('this is not a request of the control socket');
    if (this.#pending.size >= PENDING_REQUESTS_MAX) {
      const message = `${PENDING_REQUESTS_MAX} requests of this connection already wait`;
      await this.#send(failureResponse(request, new RunError({ code: 'AGENT_BUSY', message })));
      return;
    }
    const pendingResponse = this.#respond(request)
      .then((response) => this.#send(response))
      .finally(() => this.#pending.delete(pendingResponse));
    this.#pending.add(pendingResponse);
  }

  /** Checks all members. Loads the feature that answers the request. @returns null if they do not match */
  async #parse(received: RequestEnvelope): Promise<ValidRequest | null> {
    const { id, op, ...members } = received;
    const load = this.#host.requests.get(op);
    if (load === undefined) {
      const request = asInstance(ControlRequest, received);
      return request === null ? null : { id, execute: () => this.#execute(request) };
    }
    try {
      const read = await load();
      const answer = read(members);
      return answer === null ? null : { id, execute: () => answer(this.#requestHost) };
    } catch (error) {
      // Only this request fails: an attached agent run would end with its connection.
      this.#host.log.error('what a request of the control socket needs cannot be loaded', { op, error });
      return {
        id,
        execute: () => {
          throw error;
        },
      };
    }
  }

  get #requestHost(): RequestHost {
    return { members: this.#host.members, checkContract: (requested) => this.#checkContract(requested) };
  }

  async #respond(request: ValidRequest): Promise<ControlResponse> {
    if (this.#refusal !== null) return failureResponse(request, this.#refusal);
    try {
      return { id: request.id, ok: true, result: await request.execute() };
    } catch (error) {
      if (!(error instanceof CodedError)) this.#host.log.error('a request of the control socket failed', { error });
      return failureResponse(request, error);
    }
  }

  async #execute(request: ControlRequest): Promise<unknown> {
    switch (request.op) {
      case 'ping':
        return {};
      case 'start_agent':
        return this.#startAgent(request);
      case 'promote':
        return this.#startHighRisk(request.contract, () => this.#host.promote(request.options));
      case 'export':
        return this.#startHighRisk(request.contract, () => this.#host.export(request.options));
      case 'vote':
        return { results: await this.#host.approve(request.ballot) };
      case 'resolve':
        await this.#host.resolve(request.resolution);
        return {};
      case 'decide':
        this.#checkContract(request.contract);
        return this.#host.decide(request.request);
      case 'report':
        await this.#host.report(request.report);
        return {};
      case 'read_request':
        return { request: await this.#host.readRequest(request.reading) };
      case 'erase':
        return this.#host.erase(request.erasure);
      case 'find_remote':
        return { found: await this.#host.remoteAgents.find(request.run_id) };
      case 'find_keyed':
        return { found: await this.#host.remoteAgents.findKeyed(request.owner) };
      case 'find_input':
        return { found: await this.#host.remoteAgents.findInput(request.places) };
      case 'submit_remote':
        return { response: JSON.stringify(await this.#submitRemote(request)) };
      case 'end_remote':
        await this.#host.remoteAgents.end(request.run_id);
        return {};
      default: {
        const highRisk = request.op === 'finished' ? this.#highRisk.get(request.run_id) : undefined;
        return highRisk?.run.finished ?? runAgentRequest(request, this.#findAgent(request.run_id));
      }
    }
  }

  /** @throws RunError RUN_UNKNOWN for a run that this connection has not started */
  #findAgent(run_id: string): ConnectionRun<AgentRun> {
    const connectionRun = this.#agents.get(run_id);
    if (connectionRun !== undefined) return connectionRun;
    throw new RunError({ code: 'RUN_UNKNOWN', message: `this connection has no run ${run_id}` });
  }

  async #startAgent({ contract, options }: Extract<ControlRequest, { op: 'start_agent' }>): Promise<unknown> {
    this.#checkStart(contract);
    const connectionRun = await trackRun(await this.#host.startAgent(options));
    if (options.link !== 'remote') {
      this.#agents.set(connectionRun.run.run_id, connectionRun);
      if (this.#isClosed) await interrupt(connectionRun);
    }
    const { run_id, root_run_id, correlation_id } = connectionRun.run;
    return { run_id, root_run_id, correlation_id, ending: connectionRun.ending };
  }

  /** @throws RunError RUN_UNKNOWN for a run that is not remote: only its own connection may use it */
  async #submitRemote(request: Extract<ControlRequest, { op: 'submit_remote' }>): Promise<unknown> {
    const { remoteAgents } = this.#host;
    const { run_id } = request;
    if ((await remoteAgents.find(run_id)) === null) {
      throw new RunError({ code: 'RUN_UNKNOWN', message: `there is no remote agent run ${run_id}` });
    }
    return remoteAgents.submit(run_id, decodeRequestPayload(request), submitOptionsOf(request));
  }

  async #startHighRisk(contract: string | null, start: () => Promise<HighRiskRun>): Promise<unknown> {
    this.#checkStart(contract);
    const connectionRun = await trackRun(await start());
    this.#highRisk.set(connectionRun.run.run_id, connectionRun);
    const { run_id, root_run_id, correlation_id, digest } = connectionRun.run;
    return { run_id, root_run_id, correlation_id, digest, ending: connectionRun.ending };
  }

  #checkStart(contract: string | null): void {
    this.#checkContract(contract);
    if (this.#agents.size + this.#highRisk.size < RUNS_PER_CONNECTION_MAX) return;
    const message = `one connection starts at most ${RUNS_PER_CONNECTION_MAX} runs: open another one`;
    throw new RunError({ code: 'AGENT_BUSY', message });
  }

  /** A run must not be judged by another policy than its caller named. */
  #checkContract(requested: string | null): void {
    const { contract } = this.#host;
    if (requested === null || requested === contract) return;
    const used = contract === null ? 'a policy of its own' : `the contract ${contract}`;
    throw usageError(
      `the process that has this home judges by ${used}, not by ${requested}: ask for that one, or wait for its end`,
    );
  }

  #send(response: ControlResponse): Promise<void> {
    // A client that has disconnected gets no answer, and its runs are interrupted.
    return this.#connection.send(`${JSON.stringify(response)}\n`).catch(() => undefined);
  }
}

type AgentRequest = Extract<ControlRequest, { op: 'respond' | 'cancel' | 'end' | 'interrupt' | 'finished' }>;

async function runAgentRequest(request: AgentRequest, connectionRun: ConnectionRun<AgentRun>): Promise<unknown> {
  const { run } = connectionRun;
  switch (request.op) {
    case 'respond': {
      const response = await run.respond(decodeRequestPayload(request), submitOptionsOf(request));
      return { response, ending: connectionRun.ending };
    }
    case 'cancel':
      return run.cancel(request.reason);
    case 'end':
    case 'interrupt':
    case 'finished':
      return request.op === 'finished' ? run.finished : run[request.op]();
  }
}

type ProposalRequest = Extract<ControlRequest, { op: 'respond' | 'submit_remote' }>;

/** @throws UsageError */
function decodeRequestPayload({ payload }: ProposalRequest): Uint8Array {
  const bytes = decodePayload(payload);
  if (bytes !== null) return bytes;
  throw usageError('the payload is not base64');
}

const submitOptionsOf = ({ input_id, trace }: ProposalRequest): SubmitOptions =>
  omitUndefined({ inputId: input_id, trace });

/** A run with its ending, which may be set already. */
async function trackRun<Run extends Pick<AgentRun, 'finished'>>(run: Run): Promise<ConnectionRun<Run>> {
  const connectionRun: ConnectionRun<Run> = { run, ending: await Promise.race([run.finished, Promise.resolve(null)]) };
  run.finished.then(
    (ending) => (connectionRun.ending = ending),
    () => undefined,
  );
  return connectionRun;
}

const failureResponse = ({ id }: Pick<ControlRequest, 'id'>, error: unknown): ControlResponse => ({
  id,
  ok: false,
  error: toWireError(error),
});

/** A run that has ended needs no interrupt. If the interrupt fails, the run ends when the home is opened again. */
const interrupt = async ({ run, ending }: ConnectionRun<AgentRun>): Promise<void> => {
  if (ending === null) await run.interrupt().catch(() => undefined);
};
