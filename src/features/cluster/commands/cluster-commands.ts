import type { CommandGroup } from '../../../interfaces/cli/command.js';
import { clusterStatus } from './cluster-status-command.js';

export const CLUSTER_COMMANDS: readonly CommandGroup[] = [{ title: 'services', commands: [clusterStatus] }];
