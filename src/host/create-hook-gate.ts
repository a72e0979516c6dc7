import { projectPath } from '../system/files/project-path.js';
import { reportAction } from '../runtime/agents/action-reports.js';
import { RunRequests } from '../runtime/agents/run-requests.js';
import type { LedgerReader } from '../runtime/ledger/ledger-reader.js';
import type { StorageEnvironment, TurnpikeOptions } from './turnpike-options.js';
import type { TurnpikeComponents } from './wire.js';
import { checkClient } from '../features/hooks/gate/check-client.js';
import { HookGate } from '../features/hooks/gate/hook-gate.js';

/** The gate for coding agents; null without the option `hooks`. */
export const createHookGate = (
  { agents, engine, clock, log }: TurnpikeComponents,
  {
    store,
    reader,
    options,
  }: Pick<StorageEnvironment, 'store'> & {
    readonly reader: LedgerReader;
    readonly options: TurnpikeOptions;
  },
): HookGate | null =>
  options.hooks !== true
    ? null
    : new HookGate({
        ...{ agents, engine, ledger: reader, log, projectPath, inspect: checkClient },
        requests: new RunRequests(engine, clock),
        report: (report) => reportAction({ engine, store }, report),
      });
