import type { CommandGroup } from '../../../interfaces/cli/command.js';
import { doctor } from './doctor-command.js';

export const DOCTOR_COMMANDS: readonly CommandGroup[] = [{ title: 'backups and keys', commands: [doctor] }];
