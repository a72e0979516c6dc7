// The gate for coding agents of one open Turnpike.

import { reportAction } from '../../../runtime/agents/action-reports.js';
import { RunRequests } from '../../../runtime/agents/run-requests.js';
import type { HostAccess } from '../../../runtime/host-feature.js';
import { projectPath } from '../../../system/files/project-path.js';
import { checkClient } from './check-client.js';
import { HookGate } from './hook-gate.js';

declare module '../../../runtime/host-feature.js' {
  interface HostParts {
    readonly hookGate: HookGate;
  }
}

export const openHookGate = ({ agents, engine, ledger, store, clock, log }: HostAccess): HookGate =>
  new HookGate({
    ...{ agents, engine, ledger, log, projectPath, inspect: checkClient },
    requests: new RunRequests(engine, clock),
    report: (report) => reportAction({ engine, store }, report),
  });
