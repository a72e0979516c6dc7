import type { Static, TSchema } from 'typebox';
import { connectTo, type SocketConnection } from '../adapters/unix-socket.js';
import type { StepResponse } from '../contract/response.js';
import { InvariantError, LedgerError, RunError } from '../errors.js';
import type { AgentRun, RunEnding, SubmitOptions } from './agent-run.js';
import type { ApprovedRequest } from './asked-approvals.js';
import { byteLines } from './byte-lines.js';
import type { RequestReading } from './content/recorded-reading.js';
import {
  ANSWER_BYTES_MAX,
  ControlAnswer,
  ErasedCase,
  Ending,
  FoundRemote,
  HighRiskStarted,
  instanceOf,
  Nothing,
  readLine,
  RequestRead,
  Responded,
  Started,
  SubmittedRemote,
  Voted,
  type ControlAgentOptions,
  type ControlRequest,
} from './control-protocol.js';
import { errorFrom } from './control-errors.js';
import type { EraseOptions, ErasureReport } from './erasure.js';
import { defer, quietly, type Deferred } from './deferred.js';
import type {
  Ballot,
  BallotResult,
  ExportOptions,
  HighRiskRun,
  PromoteOptions,
  Resolution,
} from './high-risk/options.js';
import { payloadBytes } from './payload-bytes.js';
import type { RemoteAgents } from './remote-agents.js';
import { remoteSessions } from './sessions/remote-sessions.js';
import type { Sessions } from './sessions/sessions.js';

/** So that the other side, which hangs up on who is silent, knows that this process is alive. */
const PING_MS = 30_000;
/** How long a process that should answer at once may take. */
const ANSWER_MS_MAX = 60_000;

type Asked = ControlRequest extends infer Request ? (Request extends unknown ? Omit<Request, 'id'> : never) : never;

/** The process that holds the writer lock of a home, as another one reaches it. */
export class ControlClient {
  readonly #connection: SocketConnection;
  readonly #asked = new Map<number, Deferred<unknown>>();
  readonly #ping: NodeJS.Timeout;
  #last = 0;
  #over = false;

  constructor(connection: SocketConnection) {
    this.#connection = connection;
    this.#ping = setInterval(() => void this.#atOnce({ op: 'ping' }, Nothing).catch(() => undefined), PING_MS);
    this.#ping.unref();
    void this.#listen();
  }

  /** Whether the other process takes on work. One that is about to end, or has ended, does not. */
  async ready(): Promise<boolean> {
    try {
      await this.#atOnce({ op: 'ping' }, Nothing);
      return true;
    } catch (error) {
      if (error instanceof RunError && error.code === 'CLOSED') return false;
      throw error;
    }
  }

  /**
   * Starts an agent run in the other process. It is attached to this connection.
   * @param contract the contract folder that must be in use there, or null
   * @throws what `startAgent` throws; RunError CLOSED when the other process is gone
   */
  async startAgent(options: ControlAgentOptions, contract: string | null): Promise<AgentRun> {
    const { ending, ...ids } = await this.#atOnce({ op: 'start_agent', contract, options }, Started);
    return this.#handle(ids, ending);
  }

  /** The remote agent runs of the home. `contract` as above. */
  remoteAgents(contract: string | null): RemoteAgents {
    return {
      start: async ({ scope, ...options }) => {
        const asked = { ...options, ...(scope === undefined ? {} : { scope: { ...scope } }), link: 'remote' as const };
        const { run_id, ending } = await this.#atOnce({ op: 'start_agent', contract, options: asked }, Started);
        return { run_id, ending };
      },
      find: async (run_id) => (await this.#ask({ op: 'find_remote', run_id }, FoundRemote)).found,
      submit: async (run_id, raw, options) => {
        const asked = { op: 'submit_remote', run_id, ...proposing(raw, options) } as const;
        return JSON.parse((await this.#ask(asked, SubmittedRemote)).response) as StepResponse;
      },
      end: async (run_id) => {
        await this.#ask({ op: 'end_remote', run_id }, Nothing);
      },
    };
  }

  /** Starts a promotion in the other process, where it goes on when this connection closes. `contract` as above. */
  promote({ sources, confidentiality, ...options }: PromoteOptions, contract: string | null): Promise<HighRiskRun> {
    const lists = {
      ...(sources === undefined ? {} : { sources: [...sources] }),
      ...(confidentiality === undefined ? {} : { confidentiality: [...confidentiality] }),
    };
    return this.#highRisk({ op: 'promote', contract, options: { ...options, ...lists } });
  }

  /** The same for an export. The destination must be an absolute path. */
  export(options: ExportOptions, contract: string | null): Promise<HighRiskRun> {
    return this.#highRisk({ op: 'export', contract, options });
  }

  /** Hands in somebody's answer. What it sets going, goes on in the other process. @throws what `approve` throws */
  async approve(ballot: Ballot): Promise<readonly BallotResult[]> {
    const { results } = await this.#ask({ op: 'vote', ballot: { ...ballot, digests: [...ballot.digests] } }, Voted);
    return results;
  }

  /** @throws what `resolve` throws */
  async resolve(resolution: Resolution): Promise<void> {
    await this.#ask({ op: 'resolve', resolution }, Nothing);
  }

  /** @throws what `readRequest` throws */
  async readRequest(reading: RequestReading): Promise<ApprovedRequest | null> {
    return (await this.#ask({ op: 'read_request', reading }, RequestRead)).request;
  }

  /** @throws what `erase` throws */
  erase(erasure: EraseOptions): Promise<ErasureReport> {
    return this.#ask({ op: 'erase', erasure }, ErasedCase);
  }

  /** The sessions of the home. A spec is judged by the contract that is in use there: `contract` as above. */
  sessions(contract: string | null): Sessions {
    return remoteSessions((question, shape) => {
      const judged = question.method === 'start' || question.method === 'rebase';
      return this.#ask({ op: 'session', contract: judged ? contract : null, question }, shape);
    });
  }

  /** Hangs up: agent runs of this connection that have not ended are interrupted. */
  async close(): Promise<void> {
    await this.#connection.end();
  }

  /** Not at once: what a promotion or export would carry over is looked through before. */
  async #highRisk(asked: Extract<Asked, { op: 'promote' | 'export' }>): Promise<HighRiskRun> {
    const { ending, ...ids } = await this.#ask(asked, HighRiskStarted);
    return { ...ids, finished: this.#finished(ids.run_id, ending).promise };
  }

  #handle(ids: Pick<AgentRun, 'run_id' | 'root_run_id' | 'correlation_id'>, ended: RunEnding | null): AgentRun {
    const { run_id } = ids;
    const finished = this.#finished(run_id, ended);
    const ending = (asked: Asked) => this.#ask(asked, Ending);
    const respond = async (raw: string | Uint8Array, options?: SubmitOptions): Promise<string> => {
      const responded = await this.#ask({ op: 'respond', run_id, ...proposing(raw, options) }, Responded);
      // Before the response is there: its caller may ask at once whether there is to be another proposal.
      if (responded.ending !== null) finished.resolve(responded.ending);
      return responded.response;
    };
    return {
      ...ids,
      respond,
      submit: async (raw, options) => JSON.parse(await respond(raw, options)) as StepResponse,
      end: () => ending({ op: 'end', run_id }),
      cancel: (reason) => ending({ op: 'cancel', run_id, reason }),
      interrupt: () => ending({ op: 'interrupt', run_id }),
      finished: finished.promise,
    };
  }

  /** The end of a run: known already, or asked for. */
  #finished(run_id: string, ended: RunEnding | null): Deferred<RunEnding> {
    const finished = quietly(defer<RunEnding>());
    if (ended === null) this.#whenFinished(run_id, finished);
    else finished.resolve(ended);
    return finished;
  }

  #whenFinished(run_id: string, finished: Deferred<RunEnding>): void {
    this.#ask({ op: 'finished', run_id }, Ending).then(
      (ending) => finished.resolve(ending),
      (error: unknown) => finished.reject(error),
    );
  }

  /** Asks what needs no work there, so that no answer means that nobody is at home. */
  async #atOnce<T extends TSchema>(asked: Asked, schema: T): Promise<Static<T>> {
    const late = setTimeout(() => this.#connection.destroy(), ANSWER_MS_MAX);
    try {
      return await this.#ask(asked, schema);
    } finally {
      clearTimeout(late);
    }
  }

  async #ask<T extends TSchema>(asked: Asked, schema: T): Promise<Static<T>> {
    if (this.#over) throw gone();
    const id = (this.#last += 1);
    const answer = defer<unknown>();
    this.#asked.set(id, answer);
    // A failure to send is seen as the end of the connection, which settles the answer.
    this.#connection.send(`${JSON.stringify({ id, ...asked })}\n`).catch(() => undefined);
    const result = instanceOf(schema, await answer.promise);
    if (result === null) throw new InvariantError('the process that has this home gave an answer of another shape');
    return result;
  }

  async #listen(): Promise<void> {
    let why: unknown = null;
    try {
      for await (const line of byteLines(this.#connection.chunks, ANSWER_BYTES_MAX)) this.#take(line);
    } catch (error) {
      why = error;
    }
    this.#over = true;
    clearInterval(this.#ping);
    for (const answer of this.#asked.values()) answer.reject(why ?? gone());
    this.#asked.clear();
    this.#connection.destroy();
  }

  #take(line: Uint8Array): void {
    const answer = readLine(ControlAnswer, line);
    if (answer === null) throw new InvariantError('the process that has this home said something that is no answer');
    if (!answer.ok && answer.id === null) throw errorFrom(answer.error);
    const asked = this.#asked.get(answer.id ?? 0);
    this.#asked.delete(answer.id ?? 0);
    if (answer.ok) asked?.resolve(answer.result);
    else asked?.reject(errorFrom(answer.error));
  }
}

function proposing(raw: string | Uint8Array, { inputId }: SubmitOptions = {}) {
  const payload = Buffer.from(payloadBytes(raw)).toString('base64');
  return { payload, ...(inputId === undefined ? {} : { input_id: inputId }) };
}

/**
 * Connects to the process that serves the control socket at `path`. @returns null where nobody does
 * @throws LedgerError LEDGER_LOCKED when it cannot be reached, e.g. because it belongs to somebody else
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

const gone = (): RunError =>
  new RunError({
    code: 'CLOSED',
    message: 'the process that has this home has ended; runs through it end as INTERRUPTED when it is opened again',
  });
