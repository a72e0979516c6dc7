import { stepId } from '../../machines/agent.js';
import type { StepMemory } from '../../machines/step-memory.js';
import type { Effect, GatherRequest, SandboxRequest } from '../core/contract/run/effect.js';
import { childRunId } from '../core/contract/run/run-context.js';
import type { Tree } from './tree.js';

type DecidedChange = Pick<Effect, 'action' | 'args' | 'before' | 'case_id' | 'idempotency_key'>;

/**
 * The changes that a tree has decided to make to a sandbox: effects without a result, and changes that a step will
 * retry.
 */
export function listDecidedChanges(tree: Tree): readonly DecidedChange[] {
  const pending = tree.pending.flatMap((command) =>
    command.kind === 'perform' && !command.in_commit ? [command.effect] : [],
  );
  return [...pending, ...tree.timers.flatMap(({ run_id }) => changeAwaitingRetry(tree, run_id))];
}

/** Whether a step of the tree waits to retry a change. */
export const isAwaitingRetry = (tree: Tree): boolean =>
  (tree.policy?.retries.max ?? 0) > 0 && tree.timers.some(({ run_id }) => changeAwaitingRetry(tree, run_id).length > 0);

/** Whether a step of this agent run has begun and not ended: it waits for facts, a result or a retry. */
export const isMidStep = (tree: Tree, agent_run_id: string): boolean => tree.isLive(stepId(agent_run_id));

/** The pending sandbox query of an agent run, if its quota counts the reservations of others (C82); null otherwise. */
export function findPendingGather(tree: Tree, agent_run_id: string): SandboxRequest | null {
  const request = findFactsRequest(tree, agent_run_id);
  return request === null || request.case_id === null ? null : { ...request, case_id: request.case_id };
}

/** The facts for which a step of this agent run waits. */
export function findFactsRequest(tree: Tree, agent_run_id: string): GatherRequest | null {
  const pendingCommand = tree.pending.find(({ kind, run_id }) => kind === 'gather' && run_id === agent_run_id);
  return pendingCommand?.kind === 'gather' ? pendingCommand.request : null;
}

function changeAwaitingRetry(tree: Tree, agent_run_id: string): readonly DecidedChange[] {
  const memory = tree.actorState(stepId(agent_run_id))?.memory as Partial<StepMemory> | undefined;
  const { next_attempt, action, authorization, agent, mediated_runs } = memory ?? {};
  if (next_attempt == null || action == null || authorization?.args == null || agent === undefined) return [];
  const first = childRunId(agent_run_id, (mediated_runs ?? 0) + 1);
  const { args, before } = authorization;
  return [{ action, args, before, case_id: agent.case_id, idempotency_key: childRunId(first, 1) }];
}
