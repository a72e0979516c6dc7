// Agent runs as connections reach them: in this process, or through the one that has the home.

import type { StepResponse } from '../../contract/response.js';
import { InvariantError } from '../../errors.js';
import type { AgentOptions, AgentRun, RunEnding } from '../../runtime/agent-run.js';
import { DEFAULTS } from '../../runtime/open-request.js';
import { rootOf } from '../../runtime/ledger-reader.js';
import type { Turnpike } from '../../runtime/turnpike.js';

/** A run that takes proposals, made ready before it is called, so that calls keep their order. */
export interface OpenRun {
  /** Takes one raw payload; with an input id that was there before, it gives the recorded response. */
  submit(raw: string, inputId: string): Promise<StepResponse>;
  /** Whether it can still take new ones. */
  readonly live: boolean;
}

/** The run of a connection's own. */
export interface OwnRun {
  readonly run_id: string;
  /** Policy did not let it begin. */
  readonly denied: boolean;
}

export interface RunDoor {
  start(): Promise<OwnRun>;
  open(run_id: string): Promise<OpenRun>;
  /** Whether a run that this connection has not been given is its agent's: it is not enough to know the id. */
  belongs(run_id: string): Promise<boolean>;
  /** Whether a run has ended in a way after which its agent may begin another: finished, or silent for too long. */
  mayFollow(run_id: string): Promise<boolean>;
  /** There are no more proposals (D5). */
  end(run_id: string): Promise<void>;
}

/** Who the agents of a server are, as `startAgent` takes it. */
export type AgentIdentity = Omit<AgentOptions, 'link'>;

/** Runs of this process. They are remote: they outlive it, and end when they are silent for too long (D3). */
export function doorHere(turnpike: Turnpike, identity: AgentIdentity): RunDoor {
  return {
    start: async () => begun(await turnpike.startAgent({ ...identity, link: 'remote' })),
    open: async (run_id) => {
      const agent = await turnpike.agent(run_id);
      // Of a run that has ended, requests that come again still get their recorded response.
      if (agent === null) {
        return { live: false, submit: (raw, inputId) => turnpike.submit(run_id, raw, { inputId }) };
      }
      return { live: true, submit: (raw, inputId) => agent.submit(raw, { inputId }) };
    },
    belongs: (run_id) => isOfAgent(turnpike, run_id, identity),
    mayFollow: async (run_id) => {
      const record = await turnpike.ledger.run(run_id);
      return record !== null && followable(record.status, record.outcome ?? '');
    },
    end: async (run_id) => {
      await (await turnpike.agent(run_id))?.end();
    },
  };
}

/** A run that was denied has ended already. */
async function begun({ run_id, finished }: AgentRun): Promise<OwnRun> {
  return { run_id, denied: (await Promise.race([finished, Promise.resolve(null)])) !== null };
}

/** After a denial or a failure an agent does not simply go on: it would have its denials once more. */
const followable = (state: string, reason: string): boolean =>
  state === 'completed' || (state === 'cancelled' && /(?:^|:)idle$/.test(reason));

/** A remote agent run that was opened with the same actor, role, lane and case. */
async function isOfAgent(turnpike: Turnpike, run_id: string, identity: AgentIdentity): Promise<boolean> {
  const { actor, role, lane, case: case_id } = { ...DEFAULTS, ...identity };
  for await (const { type, body } of turnpike.ledger.entries(rootOf(run_id))) {
    if (type !== 'run_created' || body.run_id !== run_id) continue;
    const same =
      body.actor.actor_id === actor && body.role_id === role && body.lane_id === lane && body.case_id === case_id;
    return body.run_kind === 'agent' && body.link === 'remote' && same;
  }
  return false;
}

/** Runs of another process: they are attached to our connection to it, and reached by nobody else. */
export function doorThere(startAgent: () => Promise<AgentRun>): RunDoor {
  const runs = new Map<string, { readonly run: AgentRun; ending: RunEnding | null }>();
  return {
    start: async () => {
      const held = { run: await startAgent(), ending: null as RunEnding | null };
      runs.set(held.run.run_id, held);
      held.run.finished.then(
        (ending) => (held.ending = ending),
        () => undefined,
      );
      return begun(held.run);
    },
    open: (run_id) => {
      const held = runs.get(run_id);
      if (held === undefined) return Promise.reject(new InvariantError('a run of another connection was opened'));
      const live = held.ending === null;
      return Promise.resolve({ live, submit: (raw, inputId) => held.run.submit(raw, { inputId }) });
    },
    belongs: () => Promise.resolve(false),
    mayFollow: (run_id) => {
      const ending = runs.get(run_id)?.ending ?? null;
      return Promise.resolve(ending !== null && followable(ending.state, ending.reason));
    },
    end: async (run_id) => {
      const held = runs.get(run_id);
      if (held?.ending === null) await held.run.end();
    },
  };
}
