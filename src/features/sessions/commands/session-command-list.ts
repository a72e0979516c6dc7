// The session commands, in the order of the help: the agent's loop, status, and the decisions of operators.

import type { CommandGroup } from '../../../interfaces/cli/command.js';
import { sessionAck } from './session-ack-command.js';
import { sessionCheck } from './session-check-command.js';
import { sessionEnd } from './session-end-command.js';
import { sessionHeartbeat } from './session-heartbeat-command.js';
import { sessionList } from './session-list-command.js';
import { sessionNext } from './session-next-command.js';
import { sessionPackets } from './session-packets-command.js';
import { sessionPause } from './session-pause-command.js';
import { sessionPrepare } from './session-prepare-command.js';
import { sessionRebase } from './session-rebase-command.js';
import { sessionReplay } from './session-replay-command.js';
import { sessionReport } from './session-report-command.js';
import { sessionResume } from './session-resume-command.js';
import { sessionReview } from './session-review-command.js';
import { sessionStart } from './session-start-command.js';
import { sessionStatus } from './session-status-command.js';
import { sessionVerify } from './session-verify-command.js';
import { sessionWaive } from './session-waive-command.js';

export const SESSION_COMMANDS: readonly CommandGroup[] = [
  {
    title: 'sessions',
    commands: [
      sessionCheck,
      sessionStart,
      sessionNext,
      sessionReport,
      sessionReplay,
      sessionHeartbeat,
      sessionVerify,
      sessionReview,
      sessionPrepare,
      sessionStatus,
      sessionList,
      sessionPackets,
      sessionPause,
      sessionResume,
      sessionAck,
      sessionWaive,
      sessionRebase,
      sessionEnd,
    ],
  },
];
