// A home with some of everything that a ledger stores, as a crash leaves it: with an effect in flight, an agent whose
// caller is gone, a promotion that waits for approvals, and a session. Time stands still, and ids are counted.

import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Type from 'typebox';
import { overlayFiles } from '../../../../src/home/policy/overlay-file.js';
import { writeOverlay } from '../../../../src/home/policy/overlay-writer.js';
import { manifestPolicySource } from '../../../../src/home/policy/manifest-policy-source.js';
import { TokenFile } from '../../../../src/stores/keys/token-file.js';
import { sqlDatabase } from '../../../../src/stores/records/sql-database.js';
import { winstonLog } from '../../../../src/system/winston-log.js';
import type { Clock } from '../../../../src/engine/ports/clock.js';
import type { Ids } from '../../../../src/engine/ports/ids.js';
import { defineTarget } from '../../../../src/runtime/effects/define-effects.js';
import { homePaths } from '../../../../src/home/home.js';
import { openTurnpike, type Turnpike, type TurnpikeOptions } from '../../../../src/host/turnpike.js';
import { createDeferred } from '../../../../src/runtime/deferred.js';
import { writeContract } from '../../../fixtures/bench.js';
import { CASE_AGENT, service, serviceEdit, slowTool } from '../../../fixtures/service.js';
import { proposal } from '../../../fixtures/tree.js';

const TIME = Date.parse('2026-03-01T12:00:00.000Z');
/** Larger than a piece of content in PostgreSQL, once it is encrypted. */
const LARGE_BYTES = 1_048_576;
/** Ids of the second opening begin here. */
const SECOND_ID = 1_000;
const MEDIUM_BYTES = 400_000;

/** Time that stands still: the same calls give the same entries in every store. */
export const frozenClock = (at = TIME): Clock => ({ now: () => at, wake: () => () => undefined });

/** Ids in the order in which they are drawn. */
export function countedIds(first: number): Ids {
  let drawn = first;
  return { draw: (prefix) => `${prefix}${String((drawn += 1)).padStart(21, '0')}` };
}

/** The policy of the rich ledger: that of `serviceEdit`, with one approver for promotions. */
export const edit: typeof serviceEdit = (name, text) => {
  const edited = serviceEdit(name, text);
  if (name !== 'actions') return edited;
  const rule = '{ for: promotion, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 5 }';
  return `${edited}\napprovals:\n  - ${rule}\n`;
};

/** What a service that works on the ledger in `folder` opens it with. */
export function serviceOptions(folder: string, firstId: number): Omit<TurnpikeOptions, 'home' | 'store'> {
  const closed = { additionalProperties: false } as const;
  const url = `sqlite:${join(folder, 'knowledge.db')}`;
  const playbooks = defineTarget({
    name: 'shared_playbooks',
    record: Type.Object({ id: Type.String(), text: Type.String() }, closed),
    key: ['id'],
    plane: 'shared',
    database: sqlDatabase({ url, create: true }),
  });
  return {
    policies: manifestPolicySource(join(folder, 'contract')),
    clock: frozenClock(),
    ids: countedIds(firstId),
    log: winstonLog('silent'),
    control: false,
    tools: [...service().tools, slowTool(createDeferred(), createDeferred())],
    targets: [playbooks],
    storage: { reservedBytes: 65_536 },
  };
}

const BY = { actor: 'anna', role: 'ATTORNEY_ADMIN' } as const;

/** Builds the ledger in `<folder>/home`, closed. The contract is next to it. @returns the path of the home */
export async function createRichLedger(folder: string): Promise<string> {
  const live = join(folder, 'live');
  writeContract(join(folder, 'contract'), { edit });
  const first = await openTurnpike({ ...serviceOptions(folder, 0), home: live });
  put(live, 'case-a/large.bin.txt', 'x'.repeat(LARGE_BYTES));
  put(live, 'case-a/medium.txt', 'y'.repeat(MEDIUM_BYTES));
  await workInSandbox(first, 'case-a');
  await workInSandbox(first, 'case-gone');
  await first.erase({ case: 'case-gone', actor: 'operator' });
  await exportCase(first, 'case-a', 'first');
  await promote(first, true);
  // Closing writes the records of all runs that have ended so far.
  await first.close();

  const entered = createDeferred<null>();
  const release = createDeferred<null>();
  const { tools } = service();
  const options = { ...serviceOptions(folder, SECOND_ID), tools: [...tools, slowTool(entered, release)] };
  const turnpike = await openTurnpike({ ...options, home: live });
  await workInSandbox(turnpike, 'case-gone');
  await promote(turnpike, false);
  await startSession(turnpike, folder);
  await leaveUnfinished(turnpike, entered.promise);
  new TokenFile(homePaths(live).tokens).mint({ actor: 'carl', role: 'operator', rights: ['observe'] });
  await writeOverlay(overlayFiles(homePaths(live).overlay, homePaths(live).keys), {
    issued_at_utc: new Date(TIME).toISOString(),
    rules: () => [],
  });
  await settled();
  const home = join(folder, 'home');
  cpSync(live, home, { recursive: true, filter: (path) => !/control\.sock$/.test(path) });
  release.resolve(null);
  await turnpike.close();
  rmSync(live, { recursive: true, force: true });
  return home;
}

function put(home: string, path: string, content: string): void {
  const file = join(home, 'sandbox', path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
}

const submit = async (agent: Awaited<ReturnType<Turnpike['startAgent']>>, action: string, args: object) =>
  agent.submit(JSON.stringify(proposal(action, args)));

async function workInSandbox(turnpike: Turnpike, case_id: string): Promise<void> {
  const agent = await turnpike.startAgent({ case: case_id });
  const note = JSON.stringify(proposal('WRITE_FILE', { path: '/sandbox/note.md', content: `Of ${case_id}.\n` }));
  for (const payload of [note, note, 'no JSON']) await agent.submit(payload);
  for (const name of ['note.md', 'large.bin.txt', 'medium.txt', 'none.txt'])
    await submit(agent, 'READ_FILE', { path: `/sandbox/${name}` });
  await submit(agent, 'READ_FILE', { path: '/etc/passwd' });
  await agent.end();
}

export async function exportCase(turnpike: Turnpike, case_id: string, destination: string): Promise<void> {
  const run = await turnpike.export({ ...BY, case: case_id, reason: 'a request', destination, format: 'folder' });
  await run.finished;
}

async function promote(turnpike: Turnpike, isApproved: boolean): Promise<void> {
  const id = isApproved ? 'p-1' : 'p-2';
  const record = { id, text: 'Ask for the lease first.' };
  const run = await turnpike.promote({ ...BY, case: 'case-a', ticket: 'T-1', target: 'shared_playbooks', record });
  if (!isApproved) return;
  const ballot = { run: run.run_id, digests: [run.digest ?? ''], decision: 'approve' } as const;
  await turnpike.approve({ ...ballot, ...BY, actor: 'berta' });
  await run.finished;
}

async function startSession(turnpike: Turnpike, folder: string): Promise<void> {
  const by = { actor: 'anna', role: 'maintainer' } as const;
  const tasks = ['one', 'two'].map((id) => ({ id, title: id, instruction: `Do ${id}.` }));
  const spec = { spec_version: 1, id: 'small', title: 'Small', phases: [{ id: 'only', title: 'Only', tasks }] };
  writeFileSync(join(folder, 'spec.json'), JSON.stringify(spec));
  const { data } = await turnpike.sessions.start({ spec: join(folder, 'spec.json'), case: 'case-local', by });
  await turnpike.sessions.next(data?.session_id ?? '', { context_usage_pct: 1 }, by);
}

/** Three agents: one that a remote caller may continue, one whose caller dies, and one with a tool call in flight. */
async function leaveUnfinished(turnpike: Turnpike, entered: Promise<null>): Promise<void> {
  const remote = await turnpike.startAgent({ case: 'case-a', link: 'remote' });
  await submit(remote, 'THINK', {});
  const attached = await turnpike.startAgent({ case: 'case-a' });
  await submit(attached, 'THINK', {});
  const busy = await turnpike.startAgent({ ...CASE_AGENT, case: 'case-b', link: 'remote' });
  void submit(busy, 'CALL_TOOL', { tool: 'slow.tool', input: {} });
  await entered;
}

/** Lets what the library writes in the background be written. */
const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 100));
