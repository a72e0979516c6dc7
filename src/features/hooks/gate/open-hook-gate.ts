// The gate for coding agents of one open Turnpike: its tools, and the check of a client before its session begins.

import { writeMissingComparisons, type MissingComparison } from '../comparisons/call-coverage.js';
import type { Client } from '../hook-event.js';
import { inspectClient, type InspectedClient } from '../install/inspect-client.js';
import { NATIVE_TOOLS } from '../native-tools.js';
import { reportAction } from '../../../runtime/agents/action-reports.js';
import { RunRequests } from '../../../runtime/agents/run-requests.js';
import { defineExternalTool } from '../../../runtime/effects/define-effects.js';
import type { AddedTools } from '../../../runtime/effects/tools-of-features.js';
import type { HostAccess } from '../../../runtime/host-feature.js';
import { projectPath } from '../../../system/files/project-path.js';
import { HookGate, type HookReport } from './hook-gate.js';
import type { ClientCheck } from './hook-sessions.js';

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

/** The tools of coding agents as tools whose caller executes them (U-08). */
export const openNativeTools = (): AddedTools => ({
  // What a coding agent reads belongs to its project: policy separates projects by their cases.
  tools: NATIVE_TOOLS.map((tool) => defineExternalTool({ ...tool, confidentiality: [] })),
  problems: [],
  close: () => Promise.resolve(),
});

/**
 * Checks a client, by the process that decides. The hook reports only what a process of the client knows: its version,
 * and the variables that name its folders.
 */
export async function checkClient(client: Client, project: string, report: HookReport): Promise<ClientCheck> {
  const { version, environment = {} } = report;
  const inspected = await inspectClient(client, { project, profile: 'gate', environment, version });
  const { findings, hook_sha256, repository, user } = inspected;
  const opening = findings.filter(({ severity }) => severity === 'opens').map(({ id }) => id);
  const notes = findings.filter(({ severity }) => severity === 'note');
  return {
    version,
    findings: [...new Set([...report.findings, ...opening])],
    ...(hook_sha256 === null ? {} : { hook_sha256 }),
    ...{ repository, user },
    uncompared: writeMissingComparisons(notes.flatMap(({ id }) => reasonOf(id, inspected))),
  };
}

/** Notes without an effect on what is seen of a session have no reason. */
function reasonOf(id: string, { repository, user }: InspectedClient): readonly MissingComparison[] {
  switch (id.slice(id.indexOf('.') + 1)) {
    case 'outcomes_unreported':
      return [{ code: 'outcomes' }];
    case 'failures_unreported':
      return [{ code: 'failures' }];
    case 'not_measured':
      return [{ code: 'version' }];
    case 'folder_trust':
      return [{ code: 'trust' }];
    case 'repository':
      return [{ code: 'repository', count: repository.length }];
    case 'user_items':
      return [{ code: 'user', count: user.length }];
    case 'http_uncounted':
      return [{ code: 'http' }];
    case 'folders':
      return [{ code: 'folders' }];
    default:
      return [];
  }
}
