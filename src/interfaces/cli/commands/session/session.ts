// The session commands, in the order of the help: the agent's loop, status, and the decisions of operators.

import type { CliCommand } from '../../command.js';
import { sessionAck } from './session-ack.js';
import { sessionCheck } from './session-check.js';
import { sessionEnd } from './session-end.js';
import { sessionHeartbeat } from './session-heartbeat.js';
import { sessionList } from './session-list.js';
import { sessionNext } from './session-next.js';
import { sessionPackets } from './session-packets.js';
import { sessionPause } from './session-pause.js';
import { sessionPrepare } from './session-prepare.js';
import { sessionRebase } from './session-rebase.js';
import { sessionReplay } from './session-replay.js';
import { sessionReport } from './session-report.js';
import { sessionResume } from './session-resume.js';
import { sessionReview } from './session-review.js';
import { sessionStart } from './session-start.js';
import { sessionStatus } from './session-status.js';
import { sessionVerify } from './session-verify.js';
import { sessionWaive } from './session-waive.js';

export const SESSION_COMMANDS: readonly CliCommand[] = [
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
];
