import type { CliCommand } from '../../../interfaces/cli/command.js';
import {
  runSessionCommand,
  parseId,
  splitOperands,
  OVERRIDE_OPTIONS,
  parseOverride,
  callerOptions,
} from './session-options.js';

/** `turnpike session waive`: marks a gate as satisfied although nothing has passed it. */
export const sessionWaive: CliCommand = {
  name: 'session waive',
  access: 'write',
  summary: 'Waive the gate of a phase',
  operands: { usage: '[SESSION] PHASE', min: 1, max: 2 },
  options: [...OVERRIDE_OPTIONS, ...callerOptions('maintainer')],
  notes: [
    'Works only if the session allows waivers (by its posture, or `turnpike session start --waivers`). The waiver',
    'stays in the ledger permanently.',
  ],
  async run(args, io) {
    const phase_id = parseId(sessionWaive, 'phase', splitOperands(sessionWaive, args).rest[0] ?? '');
    const override = parseOverride(sessionWaive, args);
    return runSessionCommand(
      { command: sessionWaive, defaultRole: 'maintainer', args, io },
      (sessions, { session_id }, caller) => sessions.waive(session_id, { ...override, phase_id }, caller),
    );
  },
};
