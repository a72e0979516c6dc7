// What every SDK must do with governed tools: the same scenarios, with the same record, whatever the SDK (0066).

import { z } from 'zod';
import type { Entry } from '../../../src/core/contract/run/entry.js';
import type { AgentRun } from '../../../src/runtime/agents/agent-run.js';
import type { Tool } from '../../../src/runtime/effects/define-effects.js';
import type { GovernedRun } from '../../../src/interfaces/sdk/sdk-calls.js';
import { Bench, type BenchOptions } from '../../fixtures/bench.js';

/** The functions of the tools, and what they have done. */
export class ToolWorld {
  readonly effects: string[] = [];
  onHang: () => void = () => undefined;

  note = ({ text }: { readonly text: string }): { readonly noted: string } => {
    this.effects.push(`note ${text}`);
    return { noted: text };
  };
  pay = ({ amount }: { readonly amount: number }): { readonly paid: number } => {
    this.effects.push(`pay ${amount}`);
    return { paid: amount };
  };
  fail = (): object => {
    this.effects.push('fail');
    throw new Error('it broke');
  };
  hang = (): Promise<object> => {
    this.effects.push('hang');
    this.onHang();
    return new Promise(() => undefined);
  };
}

/** The schemas of the tools, as their authors write them. */
export const SCHEMAS = {
  note: z.object({ text: z.string().max(100) }),
  pay: z.object({ amount: z.number().int().min(1) }),
  fail: z.object({}),
  hang: z.object({}),
  hidden: z.object({ text: z.string() }),
  /** The tool itself wants an approval, and policy does not. */
  asking: z.object({ text: z.string() }),
} as const;

export type ToolName = keyof typeof SCHEMAS;
/** One call that the scripted model makes. */
export interface ModelCall {
  readonly id: string;
  readonly tool: ToolName;
  readonly input: object;
}

/** What the model and the application got to know. */
export interface Asked {
  /** Outputs by the ids of calls; an error begins with `error: `. */
  readonly results: Readonly<Record<string, unknown>>;
  /** The ids of calls that wait for an approval. */
  readonly pending: readonly string[];
}

/** One conversation of the scripted model. */
export interface Conversation {
  /** The model makes these calls at once, and then it ends. */
  ask(calls: readonly ModelCall[], streaming?: boolean): Promise<Asked>;
  /** Goes on after the votes, in the way of the SDK. */
  resume(approved: boolean): Promise<Asked>;
  /** What the application keeps to go on in another process. */
  state(): Promise<string>;
}

export interface GovernedDriver {
  readonly definitions: readonly Tool[];
  converse(of: GovernedRun, state?: string): Conversation;
}

/** How one SDK makes tools of the world, governs them, and calls them. */
export type SdkDriver = (world: ToolWorld) => GovernedDriver | Promise<GovernedDriver>;

/** The policy of the scenarios. */
export const sdkPolicy: NonNullable<BenchOptions['edit']> = (name, text) => {
  switch (name) {
    case 'lanes':
      return `${text}
  - lane_id: SDK_WORK
    purpose: Tools of an SDK.
    allowed_callers: { roles: [SDK_AGENT] }
    allowed_actions: { tools: [note, pay, fail, hang, asking] }
    calls:
      - { id: free, tools: [note, fail, hang, asking], decision: allow }
      - { id: pay, tools: [pay], decision: approval }
    scope: { requires: [case_id, run_id], prohibits: [] }
    audit: { required: true, level: full }
`;
    case 'roles':
      return `${text}
  - role_id: SDK_AGENT
    description: An agent with tools of an SDK.
    class: agent
    privileges: { lanes: [SDK_WORK] }
`;
    case 'actions':
      return `${text
        .replace('  - action: CREATE_DIRECTORY', '  - action: CREATE_DIRECTORY\n  - action: CALL_TOOL')
        .replace('on_child_failure: fail', 'on_child_failure: continue')}
approvals:
  - { for: call.pay, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 60 }
`;
  }
};

/** A service with the tools of one SDK. */
export class SdkBench {
  readonly world = new ToolWorld();
  readonly #driver: SdkDriver;
  #bench: Bench | null = null;
  #governed: GovernedDriver | null = null;
  #run: AgentRun | null = null;

  constructor(driver: SdkDriver) {
    this.#driver = driver;
  }

  get bench(): Bench {
    if (this.#bench === null) throw new Error('not open');
    return this.#bench;
  }

  /** Opens the service, or opens it again as after a crash: the process that had it is gone without an end. */
  async open(state?: string): Promise<Conversation> {
    this.#governed = await this.#driver(this.world);
    const tools = this.#governed.definitions;
    const before = this.#bench;
    // The lock of the home is that of this process, so the process before has to release it; it ends nothing.
    if (before !== null) await before.turnpike.close();
    this.#bench =
      before === null
        ? await Bench.open({ edit: sdkPolicy, tools })
        : await Bench.reopen(before, { tools, clock: before.clock });
    const of = { actor: 'sdk-agent', role: 'SDK_AGENT', lane: 'SDK_WORK', case: 'case-1' } as const;
    this.#run = await this.bench.turnpike.startAgent({ ...of, key: 'chat-1' });
    return this.#governed.converse({ turnpike: this.bench.turnpike, run: this.#run }, state);
  }

  /** Ends the run of the agent. */
  async end(): Promise<void> {
    await this.#run?.end();
  }

  async vote(decision: 'approve' | 'reject'): Promise<void> {
    const run = this.#run?.run_id ?? '';
    const digests = (await this.bench.turnpike.requests(run)).map(({ digest }) => digest);
    await this.bench.turnpike.approve({ run, digests, decision, actor: 'erika', role: 'ATTORNEY_ADMIN' });
  }

  /** The record of the calls, without ids and times. */
  async shape(): Promise<readonly string[]> {
    return (await this.bench.entries()).flatMap(shapeOf);
  }

  async close(): Promise<void> {
    await this.#run?.end().catch(() => undefined);
    await this.#bench?.close();
  }
}

function shapeOf({ type, body }: Entry): readonly string[] {
  if (type === 'run_created') return [`created ${body.run_kind}`];
  if (type === 'step_trace') return [`step ${body.outcome}`];
  if (type === 'audit_event' && body.action_type === 'tool_call') return [`tool ${body.outcome}`];
  return [];
}

/** A call with an id of its own. */
export const call = (id: string, tool: ToolName, input: object = {}): ModelCall => ({ id, tool, input });
