import type { CommandGroup } from '../../../interfaces/cli/command.js';
import { exportVerify } from './export-verify-command.js';

export const EXPORT_COMMANDS: readonly CommandGroup[] = [{ title: 'agents and runs', commands: [exportVerify] }];
