// What a session that is over still answers. It takes no input, so nothing of this is recorded.

import type { Artifact } from '../../contract/artifact-ref.js';
import type { JsonObject } from '../../contract/json.js';
import type { SessionRole } from '../../contract/session.js';
import type { SessionAnswer } from '../../contract/session-answer.js';
import type { SessionCommand } from '../../contract/session-command.js';
import type { Actor } from '../../contract/shapes.js';
import { refusalOf } from '../../session/answer.js';
import { carryOut } from '../../session/commands.js';
import type { SessionState } from '../../session/state.js';

interface Said {
  readonly actor: Actor;
  readonly role: SessionRole;
  readonly time: string;
  readonly input_id: string;
}

/** @returns how the session stands, or, for a report that was its last one and comes again, what that got (C65) */
export function answerOver(
  session: SessionState,
  command: SessionCommand,
  said: Said,
  [material]: readonly Artifact[],
): SessionAnswer {
  const vouch = { issue: { step_id: '', issue: 1, proof_sha256: '' }, evidence_intact: null };
  const work = { touched: [], busy: false, refuses_unmediated: false };
  const report =
    command.name === 'next' && command.report !== null && material !== undefined
      ? (JSON.parse(Buffer.from(material.bytes).toString('utf8')) as JsonObject)
      : null;
  const turn = carryOut(session, command, { ...said, vouch, work, report, new_spec: null });
  return turn.answer ?? refusalOf(session, 'INVALID_STATE_TRANSITION');
}
