// How connections reach agent runs: in this process, or through the process that owns the home directory.

import type { StepResponse } from '../../core/contract/run/response.js';
import type { TraceCarrier } from '../../core/contract/trace-context.js';
import type { Principal } from '../../engine/ports/token-book.js';
import type { AgentOptions } from '../../runtime/agents/agent-run.js';
import type { FoundRun } from '../../runtime/agents/keyed-runs.js';
import { isInCase } from '../../runtime/agents/choose-case.js';
import { AGENT_DEFAULTS } from '../../runtime/agents/caller-input.js';
import type { FoundInput, InputPlace, RemoteAgent, RemoteAgents } from '../../runtime/agents/remote-agents.js';
import { rootRunIdOf, type TerminalState } from '../../core/contract/run/run-context.js';
import { omitUndefined } from '../../core/omit-undefined.js';

/** @internal The own run of a connection. */
export interface OwnRun {
  readonly run_id: string;
  /** How it has ended, if that is known: policy denied its start, or the store says so. */
  readonly ending: EndedRun | null;
}

/** The idle limit of the runs of stateless requests: that of every other remote run. */
const IDLE_MS = 900_000;

/** The identity of the agents of a server, as for `startAgent`. */
export type AgentIdentity = Omit<AgentOptions, 'link' | 'key'>;

/** @internal The identity of the agents of a token, with the defaults of the service. */
export const agentOf = ({ actor, person, role, case: bound }: Principal, defaults: AgentIdentity): AgentIdentity => ({
  ...defaults,
  actor,
  ...omitUndefined({ person }),
  role,
  ...(bound === null ? {} : { case: bound }),
});

/**
 * @internal The runs of the agents of one identity. They are remote: they outlive the connection, until the idle limit
 * (D3).
 */
export class RunGateway {
  readonly #agents: RemoteAgents;
  readonly #identity: AgentIdentity;

  constructor(agents: RemoteAgents, identity: AgentIdentity) {
    this.#agents = agents;
    this.#identity = identity;
  }

  /** @param correlation the correlation id of the runs of one connection, unless the identity has another one */
  async start(correlation: string, trace: TraceCarrier | undefined): Promise<OwnRun> {
    return toOwnRun(await this.#agents.start({ correlation, ...this.#identity, ...omitUndefined({ trace }) }));
  }

  /** Begins the run of a key, or returns it, with its end. */
  async startKeyed(key: string, correlation: string, trace: TraceCarrier | undefined): Promise<OwnRun> {
    const options = { correlation, idleMs: IDLE_MS, ...this.#identity, key, ...omitUndefined({ trace }) };
    return toOwnRun(await this.#agents.start(options));
  }

  /** The run of a key, with its end; null if the key has no run. */
  async findKeyed(key: string): Promise<OwnRun | null> {
    // The members of an identity that the run of a key has to share.
    const { actor, person, role, lane, case: case_id } = this.#identity;
    const found = await this.#agents.findKeyed({ ...omitUndefined({ actor, person, role, lane, case: case_id }), key });
    return found === null ? null : toOwnRun(found);
  }

  /** The first of these places to which a proposal was committed, or null. */
  findInput(places: readonly InputPlace[]): Promise<FoundInput | null> {
    return this.#agents.findInput(places);
  }

  /** Loads a run before the next proposals to it, so that they keep their order. */
  async open(run_id: string): Promise<void> {
    await this.#agents.find(run_id);
  }

  /** Submits one raw payload to an opened run. For a known input id it returns the recorded response. */
  submit(run_id: string, raw: string, inputId: string, trace: TraceCarrier | undefined): Promise<StepResponse> {
    return this.#agents.submit(run_id, raw, trace === undefined ? { inputId } : { inputId, trace });
  }

  /** Whether a run belongs to the agent of the connection: knowing the id is not enough. */
  async belongs(run_id: string): Promise<boolean> {
    return isOfAgent(await this.#agents.find(run_id), this.#identity);
  }

  /** How a run has ended; null if it has not, or is not a remote run. */
  async ending(run_id: string): Promise<EndedRun | null> {
    const ended = (await this.#agents.find(run_id))?.ended ?? null;
    return ended === null ? null : endedRun(run_id, ended);
  }

  /** Ends a run, because there are no more proposals (D5). */
  end(run_id: string): Promise<void> {
    return this.#agents.end(run_id);
  }
}

const toOwnRun = ({ run_id, ending }: FoundRun): OwnRun => ({
  run_id,
  ending: ending === null ? null : endedRun(run_id, ending),
});

/** Whether a run was opened with the same actor, role, lane and case. */
function isOfAgent(run: RemoteAgent | null, identity: AgentIdentity): boolean {
  const { actor, role, lane, case: case_id } = { ...AGENT_DEFAULTS, ...identity };
  if (run?.actor !== actor || run.role !== role || run.lane !== lane) return false;
  return isInCase({ case_id: run.case, root_run_id: rootRunIdOf(run.run_id) }, case_id);
}

/** Why a run has ended, with the words for its agent. */
export const RUN_END_CAUSES = {
  FINISHED: 'its FINISH was accepted',
  END_OF_INPUT: 'its client declared the end of the input',
  IDLE: 'it was silent for too long',
  TOO_MANY_DENIALS: 'it had as many denials as the policy allows',
  TOO_MANY_INVALID: 'it had as many invalid proposals as the policy allows',
  NOT_ALLOWED: 'the policy allows no such run',
  CANCELLED: 'it was cancelled',
  FAILED: 'it failed',
} as const;
type RunEndCause = keyof typeof RUN_END_CAUSES;

/** A run that has ended, as its agent may see it. */
export interface EndedRun {
  readonly run_id: string;
  readonly state: TerminalState;
  readonly cause: RunEndCause;
}

/** @param reason the outcome of the run's record, or the reason of its ending */
function endedRun(run_id: string, { state, reason }: { state: TerminalState; reason: string }): EndedRun {
  const last = reason.slice(reason.lastIndexOf(':') + 1);
  return { run_id, state, cause: CAUSES.get(`${state}:${last}`) ?? OTHER_CAUSES[state] };
}

const CAUSES: ReadonlyMap<string, RunEndCause> = new Map([
  ['completed:end_of_input', 'END_OF_INPUT'],
  ['denied:limit.denials', 'TOO_MANY_DENIALS'],
  ['failed:INVALID_PROPOSALS', 'TOO_MANY_INVALID'],
  ['cancelled:idle', 'IDLE'],
] as const);
const OTHER_CAUSES = {
  completed: 'FINISHED',
  denied: 'NOT_ALLOWED',
  failed: 'FAILED',
  cancelled: 'CANCELLED',
} as const satisfies Record<TerminalState, RunEndCause>;

/**
 * Whether the next proposal begins another run by itself. After any other end the agent has to request it: its count of
 * denials begins anew, which must not happen unnoticed.
 */
export const isContinuable = ({ state, cause }: EndedRun): boolean => state === 'completed' || cause === 'IDLE';

/** How the call reached the run, which determines what the agent can do now. */
export type RunOrigin = 'own' | 'session' | 'named';

/**
 * The message for a call whose run has ended.
 * @param origin `last` for its own run, if no other run may follow
 */
export function runEndedMessage(ended: EndedRun, origin: RunOrigin | 'last'): string {
  const advice = origin === 'own' ? ownAdvice(ended) : ADVICE[origin];
  return `The run has ended: ${RUN_END_CAUSES[ended.cause]}. This call was not executed. ${advice}`;
}

const ADVICE = {
  session: 'Report the outstanding step of your session with `task`.',
  named: 'Omit run_id, or name a run that has not ended.',
  last: 'This server opens no other run for you: its operator has limited how many may follow.',
} as const;

function ownAdvice(ended: EndedRun): string {
  if (isContinuable(ended)) return 'Repeat the call: it goes into another run.';
  if (ended.cause === 'NOT_ALLOWED') return 'Tell the operator. When the policy has changed, call the tool new_run.';
  return 'Call the tool new_run to open another run, which is recorded as well. Then make a call that is allowed.';
}
