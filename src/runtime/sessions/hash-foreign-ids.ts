// Ids that come with a command: those of the session itself are recorded as they are, all others as hashes (C90). A
// hash is the id of no step, attempt or phase, so the session refuses it as it would refuse the id.

import { sha256 } from '../../contract/hash.js';
import type { SessionCommand } from '../../contract/session/session-command.js';
import type { SessionState } from '../../session/session-state.js';

export function hashForeignIds(command: SessionCommand, session: SessionState): SessionCommand {
  const recordId = (id: string): string =>
    id.startsWith(`${session.session_id}-`) && PLATFORM_ID.test(id) ? id : hashId(id);
  const recordPhaseId = (id: string): string =>
    session.spec.phases.some((known) => known.id === id) ? id : hashId(id);
  switch (command.name) {
    case 'verify':
      return { ...command, step_id: recordId(command.step_id) };
    case 'review':
      return { ...command, step_id: recordId(command.step_id), phase_id: recordPhaseId(command.phase_id) };
    case 'waive':
      return { ...command, phase_id: recordPhaseId(command.phase_id) };
    case 'resume': {
      const { acknowledge } = command;
      if (acknowledge === null) return command;
      return { ...command, acknowledge: { ...acknowledge, gate_attempt_id: recordId(acknowledge.gate_attempt_id) } };
    }
    default:
      return command;
  }
}

/** An id that the platform made: the session's own, and an ordinal. */
const PLATFORM_ID = /-[a-z]{1,8}\d{1,9}$/;
const hashId = (id: string): string => `sha256-${sha256(id)}`;
