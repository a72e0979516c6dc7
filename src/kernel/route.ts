// From the closed vocabulary of inputs to the events of the machines. Nothing else ever sends an event from outside.

import type { AgentEvent, ProposeEvent } from '../../machines/agent.js';
import type { ResultEvent } from '../../machines/mediated.js';
import type { OrchestratorEvent } from '../../machines/orchestrator.js';
import type { StepEvent } from '../../machines/step.js';
import type { ProposalInput, ResultInput } from '../contract/entry.js';
import type { Artifact } from '../contract/artifact-ref.js';
import { isJsonObject } from '../contract/json.js';
import { InvariantError } from '../errors.js';
import type { TreeInput } from './input.js';

/** The event that an input becomes. `open` has none: it starts the tree. */
export function eventFor({ recorded, materials }: TreeInput): AgentEvent | OrchestratorEvent | StepEvent | ResultEvent {
  switch (recorded.kind) {
    case 'open':
      throw new InvariantError('`open` starts a tree and is no event');
    case 'start_agent':
      return { ...recorded, type: 'START_AGENT' };
    case 'proposal':
      return propose(recorded, materials);
    case 'facts':
      return { type: 'FACTS', facts: recorded.facts };
    case 'result':
      return resultEvent(recorded, materials);
    case 'end':
      return { type: 'END' };
    case 'cancel':
      return { type: 'CANCEL', reason: recorded.reason };
    case 'interrupt':
      return { type: 'INTERRUPT' };
    case 'wake':
      return { type: 'WAKE', time: recorded.time };
  }
}

function propose(recorded: ProposalInput, [payload, response]: readonly Artifact[]): ProposeEvent {
  if (payload === undefined) throw new InvariantError('a proposal must bring its payload');
  const { input_id, time, seen } = recorded;
  return {
    type: 'PROPOSE',
    input_id,
    time,
    payload: recorded.payload,
    raw: payload.bytes,
    seen,
    recorded_response: response === undefined ? null : decoder.decode(response.bytes),
  };
}

function resultEvent(recorded: ResultInput, [material]: readonly Artifact[]): ResultEvent {
  const { status, cause } = recorded;
  if (material === undefined) {
    if (status === 'done') throw new InvariantError('a result that is done must bring its content');
    return { type: 'RESULT', status, cause, result: null, result_ref: null };
  }
  // Our own text, hashed in the ledger: not an agent's.
  const result: unknown = JSON.parse(decoder.decode(material.bytes));
  if (!isJsonObject(result)) throw new InvariantError('a result must be a JSON object');
  return { type: 'RESULT', status, cause, result, result_ref: recorded.result };
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
