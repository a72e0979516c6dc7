import { projectPath } from '../system/files/project-path.js';
import { reportAction } from '../runtime/agents/action-reports.js';
import { RunRequests } from '../runtime/agents/run-requests.js';
import type { LedgerReader } from '../runtime/ledger/ledger-reader.js';
import type { HookGate } from '../features/hooks/gate/hook-gate.js';
import type { StorageEnvironment, TurnpikeOptions } from './turnpike-options.js';
import type { TurnpikeComponents } from './wire.js';

/** The gate for coding agents; null without the option `hooks`. */
export async function createHookGate(
  { agents, engine, clock, log }: TurnpikeComponents,
  {
    store,
    reader,
    options,
  }: Pick<StorageEnvironment, 'store'> & {
    readonly reader: LedgerReader;
    readonly options: TurnpikeOptions;
  },
): Promise<HookGate | null> {
  if (options.hooks !== true) return null;
  const [gate, { checkClient }] = await Promise.all([
    import('../features/hooks/gate/hook-gate.js'),
    import('../features/hooks/gate/check-client.js'),
  ]);
  return new gate.HookGate({
    ...{ agents, engine, ledger: reader, log, projectPath, inspect: checkClient },
    requests: new RunRequests(engine, clock),
    report: (report) => reportAction({ engine, store }, report),
  });
}
