// The rows of inputs that record calls of coding agents. The page makes them too, so this file uses nothing that a
// browser lacks.

import type { ProposalLabel } from '../../../core/contract/inspection/proposal-label.js';

/** The beginning of the id of an input that records a call without a decision. */
export const UNGATED_INPUT = 'ungated:';

/** The beginning of the id of an input that records calls denied without a decision; their number follows. */
export const UNDECIDED_INPUT = 'undecided:';

export const HOOK_CALL = 'hook call';
export const UNGATED_CALL = 'ungated call';
/** With their number. */
export const UNDECIDED_CALLS = 'undecided calls ';

export const hookCallLabel: ProposalLabel = ({ prompt, input_id }) => {
  if (prompt?.artifact_kind !== 'hook_event') return null;
  if (input_id.startsWith(UNDECIDED_INPUT)) return `${UNDECIDED_CALLS}${input_id.split(':')[1] ?? ''}`;
  return input_id.startsWith(UNGATED_INPUT) ? UNGATED_CALL : HOOK_CALL;
};
