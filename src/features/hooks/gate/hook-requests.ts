// The requests of other processes to the gate for coding agents. Loaded with the first one.

import Type from 'typebox';
import { closed, RunId } from '../../../core/contract/shapes.js';
import { isInstance } from '../../../core/contract/validators.js';
import { usageError } from '../../../core/errors.js';
import type { AddedMembers, RequestReader } from '../../../runtime/host-feature.js';
import type { HookGate } from './hook-gate.js';
import { answerHook, HookQuestion } from './hook-question.js';

/** One event of a coding agent. */
export const readHookRequest: RequestReader = (request) =>
  isInstance(HookQuestion, request) ? async ({ members }) => answerHook(requireGate(members), request) : null;

const Text = Type.String({ maxLength: 400 });
/** A person reopens a session of a coding agent. */
const ReopenRequest = Type.Object({ reopening: Type.Object({ run: RunId, actor: Text, role: Text }, closed) }, closed);

export const readReopenRequest: RequestReader = (request) => {
  if (!isInstance(ReopenRequest, request)) return null;
  const { reopening } = request;
  return async ({ members }) => {
    await requireGate(members).reopen(reopening);
    return {};
  };
};

/** @throws UsageError */
function requireGate({ hooks }: AddedMembers): HookGate {
  if (hooks !== null) return hooks;
  throw usageError('the process that has this home decides no calls of coding agents: start it with --hooks');
}
