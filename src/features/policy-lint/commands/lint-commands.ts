import type { CommandGroup } from '../../../interfaces/cli/command.js';
import { policyCheck } from './policy-check-command.js';
import { policyPin } from './policy-pin-command.js';

export const LINT_COMMANDS: readonly CommandGroup[] = [{ title: 'policy', commands: [policyCheck, policyPin] }];
