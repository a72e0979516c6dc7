import type { CommandGroup } from '../../../interfaces/cli/command.js';
import { policyFormat } from './policy-format-command.js';
import { policySchema } from './policy-schema-command.js';

export const CONDITION_COMMANDS: readonly CommandGroup[] = [
  { title: 'policy', commands: [policySchema, policyFormat] },
];
