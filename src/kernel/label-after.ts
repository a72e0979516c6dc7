import type { Label } from '../core/contract/policy/labels.js';
import { EMPTY_LABEL, joinLabels } from '../core/policy/authorize-run.js';
import type { Decision } from './decision.js';
import type { Tree } from './tree.js';

export const READ_ACTIONS: ReadonlySet<string> = new Set(['tool_call', 'db_read']);

/**
 * The least label above `before` and the labels of everything that was read up to these decisions.
 * @param tree the tree after all of the decisions
 * @param before null: the empty label
 * @returns `before` itself if nothing is above it; null if the tree does not tell the label of a read
 */
export function labelAfter(tree: Tree, decisions: readonly Decision[], before: Label | null): Label | null {
  let label = before ?? EMPTY_LABEL;
  /** Agents with a read whose step has not ended in these decisions. */
  const reading = new Set<string>();
  const agents = new Set<string>();
  for (const { entries } of decisions) {
    for (const { entry } of entries) {
      if (entry.type === 'run_created' && entry.body.label !== null) label = joinLabels(label, entry.body.label);
      if (entry.type === 'audit_event' && entry.body.outcome === 'success' && READ_ACTIONS.has(entry.body.action_type))
        reading.add(agentOf(entry.body.run_id));
      if (entry.type === 'step_trace' && reading.delete(entry.body.run_id)) agents.add(entry.body.run_id);
    }
  }
  if (reading.size > 0) return null;
  for (const agent of agents) {
    const carried = readLabel(tree.actorState(agent)?.memory);
    if (carried === null) return null;
    label = joinLabels(label, carried);
  }
  return label;
}

/** D11: every run of an agent, and every retry, has the agent's id and an ordinal. */
export const agentOf = (run_id: string): string => run_id.slice(0, run_id.lastIndexOf('.'));

/** The label of everything that an agent has read, from its machine's context; null for any other machine. */
export const readLabel = (memory: unknown): Label | null =>
  ((memory ?? {}) as { readonly label?: Label }).label ?? null;
