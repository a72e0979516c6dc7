// A ledger as a naive reader understands it: entries in order, with effects and responses. It uses no machine and no
// policy function: entries alone determine what a run is.

import type { Command, RunTermination, Reply } from '../../machines/emission.js';
import type { AuditEvent } from '../../src/core/contract/run/audit-event.js';
import type { Entry, RecordedInput, RunCreated } from '../../src/core/contract/run/entry.js';
import { sha256 } from '../../src/core/contract/hash.js';
import type { JsonObject } from '../../src/core/contract/json.js';
import type { RunState } from '../../src/core/contract/run/run-context.js';
import type { StepTrace } from '../../src/core/contract/run/step-trace.js';
import type { Policy } from '../../src/core/policy/policy.js';
import type { Played } from './play.js';

/** One input and all that it caused. */
export interface TurnRecord {
  readonly input: RecordedInput;
  readonly entries: readonly Entry[];
  readonly commands: readonly Command[];
  readonly replies: readonly Reply[];
  readonly ended: readonly RunTermination[];
  readonly refused: boolean;
}

/** An event, and the input that caused it. */
export interface Said {
  readonly event: AuditEvent;
  readonly seq: number;
  readonly turn: number;
}

export interface Performed {
  readonly command: Extract<Command, { kind: 'perform' }>;
  readonly turn: number;
}

/** One run, from its creation on. */
export interface Life {
  readonly run: RunCreated;
  readonly seq: number;
  readonly turn: number;
  readonly said: Said[];
  readonly performed: Performed[];
}

export interface Traced {
  readonly trace: StepTrace;
  readonly seq: number;
  readonly turn: number;
}

export interface Story {
  readonly turns: readonly TurnRecord[];
  readonly lives: ReadonlyMap<string, Life>;
  readonly traces: readonly Traced[];
  readonly policy: Policy;
  /** The text with a hash. */
  content(hash: string): string;
}

export const turnRecordsOf = ({ inputs, decisions }: Played): readonly TurnRecord[] =>
  decisions.map(({ entries, commands, replies, ended, refused }, i) => {
    const input = inputs[i]?.recorded;
    if (input === undefined) throw new Error('a decision without an input');
    return { input, entries: entries.map(({ entry }) => entry), commands, replies, ended, refused };
  });

export function storyOf(played: Played, turns = turnRecordsOf(played)): Story {
  const lives = new Map<string, Life>();
  const traces: Traced[] = [];
  for (const [turn, { entries, commands }] of turns.entries()) {
    for (const entry of entries) {
      const { seq } = entry;
      if (entry.type === 'run_created') {
        if (lives.has(entry.body.run_id)) throw new Error(`${entry.body.run_id} was created twice`);
        lives.set(entry.body.run_id, { run: entry.body, seq, turn, said: [], performed: [] });
      }
      if (entry.type === 'audit_event') {
        const life = lives.get(entry.body.run_id);
        if (life === undefined) throw new Error(`${entry.body.event_id} is of a run that was not created`);
        life.said.push({ event: entry.body, seq, turn });
      }
      if (entry.type === 'step_trace') traces.push({ trace: entry.body, seq, turn });
    }
    for (const command of commands) {
      if (command.kind === 'perform') lives.get(command.run_id)?.performed.push({ command, turn });
    }
  }
  const contents = new Map<string, string>();
  for (const { materials } of played.inputs) {
    for (const { bytes } of materials.filter(({ kind }) => kind !== 'policy' && kind !== 'machines')) {
      contents.set(sha256(bytes), Buffer.from(bytes).toString('utf8'));
    }
  }
  return { turns, lives, traces, policy: played.pinned.policy, content: (hash) => contents.get(hash) ?? '' };
}

/** Votes are decisions about a request, not about the run's own lifecycle. */
export const isVote = ({ action_type, target }: AuditEvent): boolean =>
  action_type === 'authz_decision' && target?.target_type === 'system' && target.name === 'approval';

export const isRefusal = ({ outcome_reason }: AuditEvent): boolean => outcome_reason === 'INVALID_STATE_TRANSITION';
export const isResolution = ({ outcome_reason = '' }: AuditEvent): boolean =>
  outcome_reason.startsWith('OUTCOME_RESOLVED:');

/** The decisions on the run itself, in order. */
export const verdictsOf = ({ said }: Life): readonly Said[] =>
  said.filter(({ event }) => event.action_type === 'authz_decision' && !isVote(event));

/** The system events that change the state of the run. */
export const movesOf = ({ said }: Life): readonly Said[] =>
  said.filter(({ event }) => event.action_type === 'system' && !isRefusal(event) && !isResolution(event));

export const stateIn = ({ outcome_reason = '' }: AuditEvent): RunState => outcome_reason.split(':', 1)[0] as RunState;

const TERMINAL: readonly string[] = ['completed', 'failed', 'denied', 'cancelled'];

/** How it ended; undefined if it has not. */
export const endOf = (life: Life): Said | undefined =>
  movesOf(life).find(({ event }) => TERMINAL.includes(stateIn(event)));

/** The run on whose behalf it acts: its parent; for a retry that of the first attempt. */
export const behalfOf = ({ run }: Life): string | null => run.retry?.logical_parent_run_id ?? run.parent_run_id;

/** The first attempt of the action that this run attempts. */
export function firstOf(story: Story, life: Life): Life {
  const { retry, parent_run_id } = life.run;
  return retry === null ? life : (story.lives.get(parent_run_id ?? '') ?? life);
}

export interface Act {
  readonly action: string;
  readonly args: JsonObject;
}

/** The request of a mediated run, from the payload or request that it refers to. */
export function actOf(story: Story, life: Life): Act | null {
  const { run } = life;
  if (run.run_kind === 'orchestrator' || run.run_kind === 'agent') return null;
  const parent = story.lives.get(run.parent_run_id ?? '');
  if (
    run.retry === null &&
    parent !== undefined &&
    parent.run.run_kind !== 'agent' &&
    parent.run.run_kind !== 'orchestrator'
  ) {
    return actOf(story, parent);
  }
  const { input } = story.turns[firstOf(story, life).turn] ?? {};
  const started = run.run_kind === 'promotion' || run.run_kind === 'export';
  if (started) return input?.kind !== 'start_run' ? null : parsed(story.content(input.request.hash_sha256));
  const proposal = proposalBefore(story, firstOf(story, life));
  return proposal === null ? null : parsed(story.content(proposal.payload.hash_sha256));
}

/** The proposal in progress when this run was created by facts, or by a cancel while there were none. */
export function proposalBefore({ turns }: Story, life: Life) {
  for (let i = life.turn; i >= 0; i -= 1) {
    const turn = turns[i];
    if (turn?.input.kind === 'proposal' && !turn.refused && turn.input.run_id === behalfOf(life)) return turn.input;
  }
  return null;
}

function parsed(text: string): Act | null {
  try {
    const { action, args } = JSON.parse(text) as Partial<Act>;
    return action === undefined || args === undefined ? null : { action, args };
  } catch {
    return null;
  }
}

/** A finding, with the run and the rule that it violates. */
export type Faults = string[];
