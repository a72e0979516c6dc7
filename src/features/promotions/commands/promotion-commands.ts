import type { CommandGroup } from '../../../interfaces/cli/command.js';
import { approvals } from './approvals-command.js';
import { approve } from './approve-command.js';
import { exportCase } from './export-command.js';
import { promote } from './promote-command.js';
import { runsResolve } from './runs-resolve-command.js';

export const PROMOTION_COMMANDS: readonly CommandGroup[] = [
  { title: 'agents and runs', commands: [runsResolve, promote, exportCase] },
  { title: 'approvals', commands: [approvals, approve] },
];
