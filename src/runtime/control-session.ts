import { setTimeout as delay } from 'node:timers/promises';
import type { SocketConnection } from '../adapters/unix-socket.js';
import { CodedError, RunError, UsageError } from '../errors.js';
import type { Log } from '../ports/log.js';
import type { AgentRun, RunEnding, SubmitOptions } from './agent-run.js';
import type { ApprovedRequest } from './asked-approvals.js';
import { byteLines } from './byte-lines.js';
import type { RequestReading } from './content/recorded-reading.js';
import {
  ControlRequest,
  payloadOf,
  readLine,
  REQUEST_BYTES_MAX,
  type ControlAgentOptions,
  type ControlAnswer,
} from './control-protocol.js';
import { refusalOf } from './control-errors.js';
import type { EraseOptions, ErasureReport } from './erasure.js';
import type {
  Ballot,
  BallotResult,
  ExportOptions,
  HighRiskRun,
  PromoteOptions,
  Resolution,
} from './high-risk/options.js';
import type { RemoteAgents } from './remote-agents.js';
import { answerQuestion } from './sessions/session-question.js';
import type { Sessions } from './sessions/sessions.js';

/** Requests of one connection that may wait for their answers; one more is refused. */
export const REQUESTS_WAITING_MAX = 64;
/** Runs that one connection may start. */
export const RUNS_PER_CONNECTION_MAX = 1_024;
const LAST_ANSWERS_MS = 1_000;
const QUIETLY = { ref: false } as const;

/** What a session reaches of the process that it lives in. */
export interface ControlHost {
  startAgent(options: ControlAgentOptions): Promise<AgentRun>;
  promote(options: PromoteOptions): Promise<HighRiskRun>;
  export(options: ExportOptions): Promise<HighRiskRun>;
  approve(ballot: Ballot): Promise<readonly BallotResult[]>;
  resolve(resolution: Resolution): Promise<void>;
  readRequest(reading: RequestReading): Promise<ApprovedRequest | null>;
  erase(erasure: EraseOptions): Promise<ErasureReport>;
  readonly remoteAgents: RemoteAgents;
  readonly sessions: Sessions;
  /** The contract folder by which this process judges, or null where its policy is no folder. */
  readonly contract: string | null;
  readonly log: Log;
}

interface Held<Run> {
  readonly run: Run;
  ending: RunEnding | null;
}

/**
 * One connection to the control socket, with the runs that it has started and holds. Remote runs and sessions are held
 * by no connection; what it says of other runs are people's answers, which the policy judges.
 */
export class ControlSession {
  readonly #connection: SocketConnection;
  readonly #host: ControlHost;
  readonly #refusal: RunError | null;
  readonly #agents = new Map<string, Held<AgentRun>>();
  /** Promotions and exports: they are nobody's, and go on when the connection closes. */
  readonly #highRisk = new Map<string, Held<HighRiskRun>>();
  readonly #waiting = new Set<Promise<void>>();
  #over = false;

  /** With a `refusal`, that is the answer to everything. */
  constructor(connection: SocketConnection, host: ControlHost, refusal: RunError | null) {
    this.#connection = connection;
    this.#host = host;
    this.#refusal = refusal;
  }

  /** Answers until the connection closes; resolves when nothing of it is left. */
  async serve(): Promise<void> {
    try {
      for await (const line of byteLines(this.#connection.chunks, REQUEST_BYTES_MAX)) await this.#take(line);
    } catch (error) {
      await this.#send({ id: null, ok: false, error: refusalOf(error) });
    }
    await this.close();
  }

  /** Interrupts the agent runs that have not ended (D3), lets their last answers go out, and hangs up. */
  async close(): Promise<void> {
    this.#over = true;
    await Promise.all([...this.#agents.values()].map(interrupt));
    // What still waits now waits for a run that has ended, or for a reader who does not read.
    await Promise.race([Promise.all(this.#waiting), this.#connection.closed, delay(LAST_ANSWERS_MS, null, QUIETLY)]);
    await this.#connection.end();
  }

  async #take(line: Uint8Array): Promise<void> {
    const request = readLine(ControlRequest, line);
    if (request === null) throw new UsageError({ code: 'USAGE', message: 'this is no request of the control socket' });
    if (this.#waiting.size >= REQUESTS_WAITING_MAX) {
      const message = `${REQUESTS_WAITING_MAX} requests of this connection already wait`;
      await this.#send(failure(request, new RunError({ code: 'AGENT_BUSY', message })));
      return;
    }
    const answered = this.#answer(request)
      .then((answer) => this.#send(answer))
      .finally(() => this.#waiting.delete(answered));
    this.#waiting.add(answered);
  }

  async #answer(request: ControlRequest): Promise<ControlAnswer> {
    if (this.#refusal !== null) return failure(request, this.#refusal);
    try {
      return { id: request.id, ok: true, result: await this.#do(request) };
    } catch (error) {
      if (!(error instanceof CodedError)) this.#host.log.error('a request of the control socket failed', { error });
      return failure(request, error);
    }
  }

  async #do(request: ControlRequest): Promise<unknown> {
    switch (request.op) {
      case 'ping':
        return {};
      case 'start_agent':
        return this.#start(request);
      case 'promote':
        return this.#startHighRisk(request.contract, () => this.#host.promote(request.options));
      case 'export':
        return this.#startHighRisk(request.contract, () => this.#host.export(request.options));
      case 'vote':
        return { results: await this.#host.approve(request.ballot) };
      case 'resolve':
        await this.#host.resolve(request.resolution);
        return {};
      case 'read_request':
        return { request: await this.#host.readRequest(request.reading) };
      case 'erase':
        return this.#host.erase(request.erasure);
      case 'session':
        this.#refuseOtherContract(request.contract);
        return { answer: await answerQuestion(this.#host.sessions, request.question) };
      case 'find_remote':
        return { found: await this.#host.remoteAgents.find(request.run_id) };
      case 'submit_remote':
        return { response: JSON.stringify(await this.#submitRemote(request)) };
      case 'end_remote':
        await this.#host.remoteAgents.end(request.run_id);
        return {};
      default: {
        const highRisk = request.op === 'finished' ? this.#highRisk.get(request.run_id) : undefined;
        return highRisk?.run.finished ?? doAgent(request, this.#agentOf(request.run_id));
      }
    }
  }

  /** @throws RunError RUN_UNKNOWN for a run that this connection has not started */
  #agentOf(run_id: string): Held<AgentRun> {
    const held = this.#agents.get(run_id);
    if (held !== undefined) return held;
    throw new RunError({ code: 'RUN_UNKNOWN', message: `this connection has no run ${run_id}` });
  }

  async #start({ contract, options }: Extract<ControlRequest, { op: 'start_agent' }>): Promise<unknown> {
    this.#refuseStart(contract);
    const held = await holding(await this.#host.startAgent(options));
    if (options.link !== 'remote') {
      this.#agents.set(held.run.run_id, held);
      if (this.#over) await interrupt(held);
    }
    const { run_id, root_run_id, correlation_id } = held.run;
    return { run_id, root_run_id, correlation_id, ending: held.ending };
  }

  /** @throws RunError RUN_UNKNOWN for a run that is no remote one: it is its holder's */
  async #submitRemote(request: Extract<ControlRequest, { op: 'submit_remote' }>): Promise<unknown> {
    const { remoteAgents } = this.#host;
    const { run_id } = request;
    if ((await remoteAgents.find(run_id)) === null) {
      throw new RunError({ code: 'RUN_UNKNOWN', message: `there is no remote agent run ${run_id}` });
    }
    return remoteAgents.submit(run_id, bytesOf(request), inputOf(request));
  }

  async #startHighRisk(contract: string | null, start: () => Promise<HighRiskRun>): Promise<unknown> {
    this.#refuseStart(contract);
    const held = await holding(await start());
    this.#highRisk.set(held.run.run_id, held);
    const { run_id, root_run_id, correlation_id, digest } = held.run;
    return { run_id, root_run_id, correlation_id, digest, ending: held.ending };
  }

  #refuseStart(contract: string | null): void {
    this.#refuseOtherContract(contract);
    if (this.#agents.size + this.#highRisk.size < RUNS_PER_CONNECTION_MAX) return;
    const message = `one connection starts at most ${RUNS_PER_CONNECTION_MAX} runs: open another one`;
    throw new RunError({ code: 'AGENT_BUSY', message });
  }

  /** A run must not be judged by another policy than the one that its caller named. */
  #refuseOtherContract(asked: string | null): void {
    const { contract } = this.#host;
    if (asked === null || asked === contract) return;
    const used = contract === null ? 'a policy of its own' : `the contract ${contract}`;
    throw new UsageError({
      code: 'USAGE',
      message: `the process that has this home judges by ${used}, not by ${asked}: ask for that one, or wait for its end`,
    });
  }

  #send(answer: ControlAnswer): Promise<void> {
    // Whoever has hung up gets no answer, and has lost his runs by that.
    return this.#connection.send(`${JSON.stringify(answer)}\n`).catch(() => undefined);
  }
}

type AgentRequest = Extract<ControlRequest, { op: 'respond' | 'cancel' | 'end' | 'interrupt' | 'finished' }>;

async function doAgent(request: AgentRequest, held: Held<AgentRun>): Promise<unknown> {
  const { run } = held;
  switch (request.op) {
    case 'respond': {
      const response = await run.respond(bytesOf(request), inputOf(request));
      return { response, ending: held.ending };
    }
    case 'cancel':
      return run.cancel(request.reason);
    case 'end':
    case 'interrupt':
    case 'finished':
      return request.op === 'finished' ? run.finished : run[request.op]();
  }
}

type Proposing = Extract<ControlRequest, { op: 'respond' | 'submit_remote' }>;

/** @throws UsageError */
function bytesOf({ payload }: Proposing): Uint8Array {
  const bytes = payloadOf(payload);
  if (bytes !== null) return bytes;
  throw new UsageError({ code: 'USAGE', message: 'the payload is not base64' });
}

const inputOf = ({ input_id }: Proposing): SubmitOptions => (input_id === undefined ? {} : { inputId: input_id });

/** A run, and its end as soon as there is one: it may have ended already. */
async function holding<Run extends Pick<AgentRun, 'finished'>>(run: Run): Promise<Held<Run>> {
  const held: Held<Run> = { run, ending: await Promise.race([run.finished, Promise.resolve(null)]) };
  run.finished.then(
    (ending) => (held.ending = ending),
    () => undefined,
  );
  return held;
}

const failure = ({ id }: ControlRequest, error: unknown): ControlAnswer => ({ id, ok: false, error: refusalOf(error) });

/** A run that has ended meanwhile needs no end; one that cannot be ended now is ended when the home is opened again. */
const interrupt = async ({ run, ending }: Held<AgentRun>): Promise<void> => {
  if (ending === null) await run.interrupt().catch(() => undefined);
};
