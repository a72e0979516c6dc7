import type { CommandGroup } from '../../../interfaces/cli/command.js';
import { upstreamList } from './upstream-list-command.js';
import { upstreamPin } from './upstream-pin-command.js';

export const UPSTREAM_COMMANDS: readonly CommandGroup[] = [{ title: 'policy', commands: [upstreamList, upstreamPin] }];
