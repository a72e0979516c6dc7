import type { Command } from '../command.js';
import { askSession, idOf, operandsOf, OVERRIDE_OPTIONS, overrideOf, speakerOptions } from '../session-speaker.js';

/** `turnpike session waive`: a gate that counts as satisfied though nothing has passed it. */
export const sessionWaive: Command = {
  name: 'session waive',
  summary: 'Waive the gate of a phase',
  operands: { usage: '[SESSION] PHASE', min: 1, max: 2 },
  options: [...OVERRIDE_OPTIONS, ...speakerOptions('maintainer')],
  notes: ['Only where the session was started so that gates may be waived; the waiver stands in the ledger for good.'],
  async run(args, io) {
    const phase_id = idOf(sessionWaive, 'phase', operandsOf(sessionWaive, args).rest[0] ?? '');
    const override = overrideOf(sessionWaive, args);
    return askSession({ command: sessionWaive, voice: 'maintainer', args, io }, (sessions, { session_id }, by) =>
      sessions.waive(session_id, { ...override, phase_id }, by),
    );
  },
};
