import type { CommandGroup } from '../../../interfaces/cli/command.js';
import { decide } from './decide-command.js';
import { runsReport } from './runs-report-command.js';

export const DECISION_COMMANDS: readonly CommandGroup[] = [
  { title: 'agents and runs', commands: [decide, runsReport] },
];
