// What a session that is over still answers. It takes no input, so nothing of this is recorded.

import type { Artifact } from '../../contract/artifact-ref.js';
import type { JsonObject } from '../../contract/json.js';
import type { SessionRole } from '../../contract/session/session.js';
import type { SessionAnswer } from '../../contract/session/session-answer.js';
import type { SessionCommand } from '../../contract/session/session-command.js';
import type { Actor } from '../../contract/shapes.js';
import { rejectionAnswer } from '../../session/session-answer.js';
import { applyCommand } from '../../session/apply-command.js';
import type { SessionState } from '../../session/session-state.js';

interface CommandSource {
  readonly actor: Actor;
  readonly role: SessionRole;
  readonly time: string;
  readonly input_id: string;
}

/** @returns how the session stands, or, for a report that was its last one and comes again, what that got (C65) */
export function answerClosedSession(
  session: SessionState,
  command: SessionCommand,
  source: CommandSource,
  [material]: readonly Artifact[],
): SessionAnswer {
  const vouch = { issue: { step_id: '', issue: 1, proof_sha256: '' }, evidence_intact: null };
  const work = { touched: [], busy: false, refuses_unmediated: false };
  const report =
    command.name === 'next' && command.report !== null && material !== undefined
      ? (JSON.parse(Buffer.from(material.bytes).toString('utf8')) as JsonObject)
      : null;
  const turn = applyCommand(session, command, { ...source, vouch, work, report, new_spec: null });
  return turn.answer ?? rejectionAnswer(session, 'INVALID_STATE_TRANSITION');
}
