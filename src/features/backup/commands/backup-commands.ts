import type { CommandGroup } from '../../../interfaces/cli/command.js';
import { backup } from './backup-command.js';
import { failoverAccept } from './failover-accept-command.js';
import { homeCopy, homeReopen } from './home-copy-command.js';
import { restoreAcknowledge } from './restore-acknowledge-command.js';
import { restore } from './restore-command.js';

export const BACKUP_COMMANDS: readonly CommandGroup[] = [
  { title: 'services', commands: [failoverAccept, homeCopy, homeReopen] },
  { title: 'backups and keys', commands: [backup, restore, restoreAcknowledge] },
];
