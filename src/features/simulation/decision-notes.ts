// Collects the facts of each decision of a tree just before the machines decide, while the recorded tree is folded. It
// only observes and does not affect the machines.

import type { AgentMemory } from '../../../machines/agent-memory.js';
import { type StepInput, type StepMemory } from '../../../machines/step-memory.js';
import { newStepMemory, type StepEvent } from '../../../machines/step.js';
import { RUN_ENDING_DENIAL } from '../../core/step/authorization.js';
import type { StartCallerRunEvent } from '../../../machines/caller-runs/caller-run.js';
import type { MediatedInput } from '../../../machines/mediated.js';
import type { MediatedMemory, VoteEvent } from '../../../machines/mediated-memory.js';
import type { OrchestratorMemory, StartAgentEvent } from '../../../machines/orchestrator.js';
import type { StartRunEvent } from '../../../machines/high-risk-run.js';
import type { GatherRequest } from '../../core/contract/run/effect.js';
import type { OverlayFact } from '../../core/contract/policy/overlay.js';
import { childRunId, type RunContext } from '../../core/contract/run/run-context.js';
import type { ObservedActor, TransitionObserver } from '../../kernel/interpreter/actors.js';
import type {
  MediatedAct,
  AgentStart,
  ApprovalFacts,
  BallotFacts,
  DecisionFacts,
  StepFacts,
} from './recorded-decision.js';

/** A step that has no verdict yet. */
export interface OpenStep {
  readonly input: StepInput;
  gathered: GatherRequest | null;
}

/** The facts of one tree's decisions, each until the entry that records the decision. */
export class DecisionNotes implements TransitionObserver {
  readonly #starts = new Map<string, AgentStart>();
  readonly #steps = new Map<string, OpenStep>();
  readonly #runs = new Map<string, DecisionFacts>();
  readonly #answers = new Map<string, ApprovalFacts>();
  readonly #ballots = new Map<string, Omit<BallotFacts, 'kind' | 'nth'>>();

  onEvent({ machine, memory, event }: ObservedActor): void {
    if (event.type !== 'VOTE' && event.type !== 'WAKE') return;
    const vote = event.type === 'VOTE' ? (event as VoteEvent) : null;
    if (machine === 'agent' && vote !== null) {
      const { run, approvals } = memory as unknown as AgentMemory;
      this.#ballots.set(run.run_id, { book: approvals, event: vote });
    }
    if (machine !== 'mediated') return;
    const { run, approval } = memory as unknown as MediatedMemory;
    const of = this.#runs.get(run.run_id);
    if (approval === null || of?.kind !== 'run') return;
    this.#answers.set(run.run_id, { kind: 'approval', of, approval, event: vote });
    if (vote !== null) this.#ballots.set(run.run_id, { book: approval.book, event: vote });
  }

  onSpawn(
    parent: ObservedActor,
    { src, id, input }: { readonly src: string; readonly id: string; readonly input: unknown },
  ) {
    if (parent.machine === 'session') this.#runs.set(id, { kind: 'orchestrator', run: (input as StartedInput).run });
    else if (parent.machine === 'orchestrator') this.#noteStarted(parent, src, id);
    else if (parent.machine === 'agent' && src === 'caller_run') this.#noteCallerRun(parent, input as MediatedInput);
    else if (parent.machine === 'agent') {
      const step = input as StepInput;
      this.#steps.set(step.agent.run_id, { input: step, gathered: null });
    } else if (parent.machine === 'step') this.#noteAct(parent, id, (input as MediatedInput).request.overlay);
    else this.#noteWrite(parent.memory as unknown as MediatedMemory, id);
  }

  /** Returns the facts of the next decision about a run: the answer to its approval request, or else its start. */
  takeFacts(run_id: string): DecisionFacts | undefined {
    const answer = this.#answers.get(run_id);
    this.#answers.delete(run_id);
    return answer ?? this.#runs.get(run_id);
  }

  ballotOf(run_id: string, nth: number): BallotFacts | undefined {
    const ballot = this.#ballots.get(run_id);
    return ballot === undefined ? undefined : { kind: 'ballot', ...ballot, nth };
  }

  /** Removes and returns the step of this agent run, for a step that ends without a mediated run. */
  takeStep(run_id: string): StepFacts | undefined {
    const [openStep, start] = [this.#steps.get(run_id), this.#starts.get(run_id)];
    this.#steps.delete(run_id);
    if (openStep === undefined || start === undefined) return undefined;
    const { approvals } = newStepMemory(openStep.input);
    return { kind: 'step', ...openStep, start, approvals, facts: null, ending: false, act: null };
  }

  recordGather(run_id: string, gathered: GatherRequest): void {
    const openStep = this.#steps.get(run_id);
    if (openStep !== undefined) openStep.gathered = gathered;
  }

  forget(run_ids: readonly string[]): void {
    for (const run_id of run_ids) {
      this.#runs.delete(run_id);
      this.#answers.delete(run_id);
      this.#ballots.delete(run_id);
      this.#starts.delete(run_id);
      this.#steps.delete(run_id);
    }
  }

  #noteStarted({ memory, event }: ObservedActor, src: string, id: string): void {
    const { run, children, account, live } = memory as unknown as OrchestratorMemory;
    if (src !== 'agent') {
      this.#runs.set(id, { kind: 'run', from: { run, children }, event: event as StartRunEvent });
      return;
    }
    const { actor, person, role_id, lane_id, budget, overlay } = event as StartAgentEvent;
    const siblings = live.flatMap(({ run_id, grant }) => (grant === null ? [] : (this.#starts.get(run_id) ?? [])));
    const startEvent = { actor, person, role_id, lane_id, budget, overlay };
    const start: AgentStart = {
      kind: 'agent',
      parent: run,
      children,
      event: startEvent,
      spent: account.spent,
      siblings,
    };
    this.#starts.set(id, start);
    this.#runs.set(id, start);
  }

  /** Notes the facts of a step's mediated run: those of the first attempt, or of a retry. */
  #noteAct({ memory, event }: ObservedActor, id: string, overlay: OverlayFact | null): void {
    const step = memory as unknown as StepMemory;
    const { agent, approvals, attempts } = step;
    const [openStep, start] = [this.#steps.get(agent.run_id), this.#starts.get(agent.run_id)];
    if (openStep === undefined || start === undefined) return;
    const act = actOf(step, start);
    if (attempts > 0) {
      this.#runs.set(id, { kind: 'retry', act, run_id: id, overlay });
      return;
    }
    const { type } = event as StepEvent | { readonly type: 'other' };
    const facts = type === 'FACTS' ? (event as Extract<StepEvent, { readonly type: 'FACTS' }>).facts : null;
    this.#runs.set(id, { kind: 'step', ...openStep, start, approvals, facts, ending: type === 'CANCEL', act });
  }

  /** Notes the facts of a run that the caller executes. Its agent run starts it; no facts are gathered. */
  #noteCallerRun({ memory, event }: ObservedActor, { run, request }: MediatedInput): void {
    const { run_id } = (memory as unknown as AgentMemory).run;
    const [openStep, start] = [this.#steps.get(run_id), this.#starts.get(run_id)];
    if (openStep === undefined || start === undefined) return;
    const { agent, approvals } = newStepMemory(openStep.input);
    const { action, args } = request.effect;
    const act: MediatedAct = { start, agent, action, args, label: request.privileged.label, run_id: run.run_id };
    const ending = (event as unknown as StartCallerRunEvent).verdict.rule_id === RUN_ENDING_DENIAL.rule_id;
    this.#runs.set(run.run_id, { kind: 'step', ...openStep, start, approvals, facts: null, ending, act });
  }

  #noteWrite({ run, request }: MediatedMemory, run_id: string): void {
    const of = this.#runs.get(run.run_id);
    if (of?.kind !== 'step' && of?.kind !== 'retry' && of?.kind !== 'run') return;
    this.#runs.set(run_id, { kind: 'write', of, run_id, parent_run_id: run.run_id, overlay: request.overlay });
  }
}

interface StartedInput {
  readonly run: RunContext;
}

const actOf = ({ agent, action, args, label, mediated_runs }: StepMemory, start: AgentStart): MediatedAct => ({
  start,
  agent,
  action: action ?? '',
  args: args ?? {},
  label,
  run_id: childRunId(agent.run_id, mediated_runs + 1),
});
