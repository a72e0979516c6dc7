import type { CommandGroup } from '../../../interfaces/cli/command.js';
import { ledgerArchive } from './ledger-archive-command.js';
import { ledgerExport } from './ledger-export-command.js';

export const EVIDENCE_COMMANDS: readonly CommandGroup[] = [
  { title: 'evidence', commands: [ledgerExport, ledgerArchive] },
];
