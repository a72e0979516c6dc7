import type { CommandGroup } from '../../../interfaces/cli/command.js';
import { policyCoverage } from './policy-coverage-command.js';
import { policyExplain } from './policy-explain-command.js';
import { policySimulate } from './policy-simulate-command.js';
import { policyTest } from './policy-test-command.js';

export const SIMULATION_COMMANDS: readonly CommandGroup[] = [
  { title: 'policy', commands: [policyTest, policySimulate, policyExplain, policyCoverage] },
];
