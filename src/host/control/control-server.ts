// Serves the control socket of a home (D13). The process that holds the writer lock executes the requests of all other
// processes.
//
// Invariants:
//   C1. Only the holder of the writer lock serves the socket, so an existing socket file is left over from a dead
//       process.
//   C2. A connection reaches the attached agent runs that it started, no others, and remote runs by their ids. Ballots
//       and resolutions may concern any run: policy decides about them. Sessions accept commands from every connection,
//       and check them against the role in the command.
//   C3. When a connection closes, for any reason, its attached agent runs that have not ended are interrupted (D3).
//       Remote runs, promotions, exports and sessions continue.
//   C4. The process does not retire while it serves a connection: whatever a client could start when it connected, it
//       can start until it disconnects.
//   C5. The length of lines and the numbers of connections and pending requests are bounded, and idle connections are
//       closed.

import { setTimeout as delay } from 'node:timers/promises';
import { listenAt, type SocketConnection } from '../../system/network/unix-socket.js';
import type { StepResponse } from '../../core/contract/run/response.js';
import { isConforming } from '../../core/contract/validators.js';
import { CodedError, RunError, usageError } from '../../core/errors.js';
import { omitUndefined } from '../../core/omit-undefined.js';
import type { Log } from '../../engine/ports/log.js';
import type { AgentRun, RunEnding, SubmitOptions } from '../../runtime/agents/agent-run.js';
import type { ApprovedRequest } from '../../runtime/ledger/pending-approvals.js';
import { splitLines } from './split-lines.js';
import { createDeferred } from '../../runtime/deferred.js';
import type { ReadRequestOptions } from '../../runtime/content/read-content.js';
import {
  CONTROL_OPERATIONS,
  RequestEnvelope,
  parseMessage,
  REQUEST_BYTES_MAX,
  type ControlAgentOptions,
  type ControlOperation,
  type ControlResponse,
  type RequestMembersOf,
  type ResultOf,
  toWireError,
} from './control-messages.js';
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

const CONNECTIONS_MAX = 64;
/** Idle timeout in milliseconds. A live client sends messages more often, if only a `ping`. */
const IDLE_MS = 120_000;
/** Limit of pending requests per connection; further ones are refused. */
export const PENDING_REQUESTS_MAX = 64;
/** Limit of runs that one connection may start. */
const RUNS_PER_CONNECTION_MAX = 1_024;
const CLOSE_GRACE_MS = 1_000;
const UNREFERENCED = { ref: false } as const;

/** The operations of a home that a client has through the control socket, as callers have them in the process. */
export interface ControlledOperations {
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
}

/** What the server uses of its process. */
export interface ControlHost {
  readonly turnpike: ControlledOperations & AddedMembers;
  /** The requests that features answer. */
  readonly requests: RequestReaders;
  /** The contract folder of this process, or null if its policy does not come from a folder. */
  readonly contract: string | null;
  readonly log: Log;
}

export interface ControlServer {
  /** The number of clients that work through this process. */
  readonly connections: number;
  /** Waits until no client is connected and accepts no further one, so that a following `close` interrupts no run. */
  retire(): Promise<unknown>;
  /** Accepts no more connections, and closes the open ones with their runs. */
  close(): Promise<void>;
}

/** Serves the control socket at `path`. @returns null if it cannot: then other processes cannot reach this home */
export async function tryServeControl(path: string, host: ControlHost): Promise<ControlServer | null> {
  const sessions = new Set<ControlSession>();
  const idle = createDeferred<null>();
  let retiring = false;
  let retired = false;
  const retireIfIdle = (): void => {
    if (!retiring || sessions.size > 0) return;
    retired = true;
    idle.resolve(null);
  };
  const serve = async (connection: SocketConnection): Promise<void> => {
    const message = 'the process that has this home is about to end: try again';
    const refusal = retired ? new RunError({ code: 'CLOSED', message }) : null;
    const session = new ControlSession(connection, host, refusal);
    sessions.add(session);
    await session.serve();
    sessions.delete(session);
    retireIfIdle();
  };
  const server = await listenAt({
    path,
    connectionsMax: CONNECTIONS_MAX,
    idleMs: IDLE_MS,
    onConnection: (connection) => void serve(connection),
  }).catch((error: unknown) => {
    host.log.warn('the control socket cannot be served: other processes cannot act on this home', { error });
    return null;
  });
  if (server === null) return null;
  return {
    get connections() {
      return sessions.size;
    },
    retire: () => {
      retiring = true;
      retireIfIdle();
      return idle.promise;
    },
    close: async () => {
      await server.close();
      await Promise.all([...sessions].map((session) => session.close()));
    },
  };
}

/** How each request that the platform answers is executed. */
type Handlers = {
  readonly [Op in ControlOperation]: (members: RequestMembersOf<Op>) => ResultOf<Op> | Promise<ResultOf<Op>>;
};

/** A request that conforms to its schema. */
interface ValidRequest {
  readonly id: number;
  readonly execute: () => unknown;
}

interface ConnectionRun<Run> {
  readonly run: Run;
  ending: RunEnding | null;
}

/**
 * One connection to the control socket, with the agent runs that it has started. Remote runs and sessions belong to no
 * connection.
 */
class ControlSession {
  readonly #connection: SocketConnection;
  readonly #host: ControlHost;
  readonly #refusal: RunError | null;
  readonly #agents = new Map<string, ConnectionRun<AgentRun>>();
  /** Promotions and exports: they continue when the connection closes. */
  readonly #highRisk = new Map<string, ConnectionRun<HighRiskRun>>();
  readonly #pending = new Set<Promise<void>>();
  readonly #handlers: Handlers = {
    ping: () => ({}),
    start_agent: ({ contract, options }) => this.#startAgent(contract, options),
    respond: async ({ run_id, ...proposal }) => {
      const agent = this.#findAgent(run_id);
      const response = await agent.run.respond(decodeProposal(proposal), submitOptionsOf(proposal));
      return { response, ending: agent.ending };
    },
    end: ({ run_id }) => this.#findAgent(run_id).run.end(),
    interrupt: ({ run_id }) => this.#findAgent(run_id).run.interrupt(),
    finished: ({ run_id }) => (this.#highRisk.get(run_id) ?? this.#findAgent(run_id)).run.finished,
    cancel: ({ run_id, reason }) => this.#findAgent(run_id).run.cancel(reason),
    find_remote: async ({ run_id }) => ({ found: await this.#host.turnpike.remoteAgents.find(run_id) }),
    find_keyed: async ({ owner }) => ({ found: await this.#host.turnpike.remoteAgents.findKeyed(owner) }),
    find_input: async ({ places }) => ({ found: await this.#host.turnpike.remoteAgents.findInput(places) }),
    submit_remote: async ({ run_id, ...proposal }) => ({
      response: JSON.stringify(await this.#submitRemote(run_id, proposal)),
    }),
    end_remote: ({ run_id }) => toEmptyResult(this.#host.turnpike.remoteAgents.end(run_id)),
    promote: ({ contract, options }) => this.#startHighRisk(contract, () => this.#host.turnpike.promote(options)),
    export: ({ contract, options }) => this.#startHighRisk(contract, () => this.#host.turnpike.export(options)),
    vote: async ({ ballot }) => ({ results: await this.#host.turnpike.approve(ballot) }),
    resolve: ({ resolution }) => toEmptyResult(this.#host.turnpike.resolve(resolution)),
    decide: ({ contract, request }) => {
      this.#checkContract(contract);
      return this.#host.turnpike.decide(request);
    },
    report: ({ report }) => toEmptyResult(this.#host.turnpike.report(report)),
    read_request: async ({ reading }) => ({ request: await this.#host.turnpike.readRequest(reading) }),
    erase: ({ erasure }) => this.#host.turnpike.erase(erasure),
  };
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
  async #parse({ id, op, ...members }: RequestEnvelope): Promise<ValidRequest | null> {
    const load = this.#host.requests.get(op);
    if (load === undefined) {
      if (!isControlOperation(op) || !isConforming(CONTROL_OPERATIONS[op].members, members)) return null;
      const handler = this.#handlers[op] as (members: unknown) => unknown;
      return { id, execute: () => handler(members) };
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
    return { members: this.#host.turnpike, checkContract: (requested) => this.#checkContract(requested) };
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

  /** @throws RunError RUN_UNKNOWN for a run that this connection has not started */
  #findAgent(run_id: string): ConnectionRun<AgentRun> {
    const connectionRun = this.#agents.get(run_id);
    if (connectionRun !== undefined) return connectionRun;
    throw new RunError({ code: 'RUN_UNKNOWN', message: `this connection has no run ${run_id}` });
  }

  async #startAgent(contract: string | null, options: ControlAgentOptions): Promise<ResultOf<'start_agent'>> {
    this.#checkStart(contract);
    const connectionRun = await trackRun(await this.#host.turnpike.startAgent(options));
    if (options.link !== 'remote') {
      this.#agents.set(connectionRun.run.run_id, connectionRun);
      if (this.#isClosed) await interrupt(connectionRun);
    }
    const { run_id, root_run_id, correlation_id } = connectionRun.run;
    return { run_id, root_run_id, correlation_id, ending: connectionRun.ending };
  }

  /** @throws RunError RUN_UNKNOWN for a run that is not remote: only its own connection may use it */
  async #submitRemote(run_id: string, proposal: Proposal): Promise<StepResponse> {
    const { remoteAgents } = this.#host.turnpike;
    if ((await remoteAgents.find(run_id)) === null) {
      throw new RunError({ code: 'RUN_UNKNOWN', message: `there is no remote agent run ${run_id}` });
    }
    return remoteAgents.submit(run_id, decodeProposal(proposal), submitOptionsOf(proposal));
  }

  async #startHighRisk(contract: string | null, start: () => Promise<HighRiskRun>): Promise<ResultOf<'promote'>> {
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

/** Own names only: an inherited one is no operation. */
const isControlOperation = (op: string): op is ControlOperation => Object.hasOwn(CONTROL_OPERATIONS, op);

type Proposal = Omit<RequestMembersOf<'respond'>, 'run_id'>;

/** @throws UsageError for a text that is not the base64 of its bytes */
function decodeProposal({ payload }: Proposal): Uint8Array {
  const bytes = Buffer.from(payload, 'base64');
  if (bytes.toString('base64') === payload) return bytes;
  throw usageError('the payload is not base64');
}

const submitOptionsOf = ({ input_id, trace }: Proposal): SubmitOptions => omitUndefined({ inputId: input_id, trace });

const toEmptyResult = async (done: Promise<void>): Promise<ResultOf<'resolve'>> => {
  await done;
  return {};
};

/** A run with its ending, which may be set already. */
async function trackRun<Run extends Pick<AgentRun, 'finished'>>(run: Run): Promise<ConnectionRun<Run>> {
  const connectionRun: ConnectionRun<Run> = { run, ending: await Promise.race([run.finished, Promise.resolve(null)]) };
  run.finished.then(
    (ending) => (connectionRun.ending = ending),
    () => undefined,
  );
  return connectionRun;
}

const failureResponse = ({ id }: Pick<ValidRequest, 'id'>, error: unknown): ControlResponse => ({
  id,
  ok: false,
  error: toWireError(error),
});

/** A run that has ended needs no interrupt. If the interrupt fails, the run ends when the home is opened again. */
const interrupt = async ({ run, ending }: ConnectionRun<AgentRun>): Promise<void> => {
  if (ending === null) await run.interrupt().catch(() => undefined);
};
