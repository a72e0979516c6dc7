// Backups of a ledger under 64 callers, killed at random points. A finished backup restores, verifies, replays and has
// every step that was acknowledged before it began. An unfinished one is refused, and completes when it is repeated.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { policySource } from '../../src/home/policy/home-policy.js';
import { winstonLog } from '../../src/system/winston-log.js';
import { openSqliteStore } from '../../src/stores/sqlite/sqlite-ledger-store.js';
import { restoreHome, type RestoreOptions } from '../../src/features/backup/restore-home.js';
import { isFinishedBackup } from '../../src/features/backup/backup-manifest.js';
import { homePaths } from '../../src/home/home-paths.js';
import { erasureSealOf, openHead, sqliteFiles } from '../../src/home/home.js';
import { LedgerReader } from '../../src/runtime/ledger/ledger-reader.js';
import { shippedContract } from '../../src/runtime/shipped-contract.js';
import '../fixtures/declared-features.js';

export interface BackupCampaign {
  /** Empty. */
  readonly folder: string;
  /** The built programs. */
  readonly service: string;
  readonly victim: string;
  readonly kills: number;
  /** Kills on one ledger; then a new one begins. */
  readonly killsPerLedger: number;
  /** Creates a home. @returns its path */
  readonly newHome: (name: string) => Promise<string>;
  readonly random: () => number;
  readonly say?: (line: string) => void;
}

export interface BackupTally {
  backups: number;
  killed: number;
  finished: number;
  unfinished: number;
  /** Unfinished backups that were repeated in the same folder, and finished. */
  repeated: number;
  entries: number;
  readonly violations: string[];
  /** The longest step of all callers, in ms: with a backup, and without one. */
  slowest: { with: number; without: number };
}

/** Time in which steps are measured without a backup, and before it, in ms. */
const SETTLE_MS = 700;

interface Service {
  readonly child: ChildProcess;
  readonly lines: Interface;
  /** Rejects when the process ends. */
  readonly ended: Promise<never>;
}

interface ServiceReport {
  readonly acknowledged: number;
  readonly max: number;
}

export async function runBackups(options: BackupCampaign): Promise<BackupTally> {
  const tally: BackupTally = {
    ...{ backups: 0, killed: 0, finished: 0, unfinished: 0, repeated: 0, entries: 0 },
    violations: [],
    slowest: { with: 0, without: 0 },
  };
  for (let ledger = 0; tally.killed < options.kills; ledger += 1) await runLedger(options, ledger, tally);
  return tally;
}

async function runLedger(options: BackupCampaign, ledger: number, tally: BackupTally): Promise<void> {
  const { folder, killsPerLedger, kills, random, newHome } = options;
  const home = await newHome(`home-${ledger}`);
  const service = await startService(options, home);
  try {
    const wholeMs = await backUp(options, { home, service, name: `${ledger}-whole`, killAfterMs: null }, tally);
    for (let round = 0; round < killsPerLedger && tally.killed < kills; round += 1) {
      // Without the steps that have waited while the service was stopped.
      await delay(SETTLE_MS);
      await report(service);
      await delay(SETTLE_MS);
      tally.slowest.without = Math.max(tally.slowest.without, (await report(service)).max);
      // Later than a whole backup, too: the end is where a manifest could be wrong.
      const killAfterMs = random() * wholeMs * 1.3;
      await backUp(options, { home, service, name: `${ledger}-${round}`, killAfterMs }, tally);
    }
  } finally {
    service.lines.close();
    service.child.kill('SIGKILL');
    if (service.child.exitCode === null && service.child.signalCode === null) await once(service.child, 'exit');
    rmSync(join(folder, `home-${ledger}`), { recursive: true, force: true });
  }
}

interface BackupRun {
  readonly home: string;
  readonly service: Service;
  readonly name: string;
  readonly killAfterMs: number | null;
}

/** @returns how long the backup took, in ms */
async function backUp(options: BackupCampaign, run: BackupRun, tally: BackupTally): Promise<number> {
  const { folder, say = () => undefined } = options;
  const { home, service, name, killAfterMs } = run;
  const to = join(folder, `backup-${name}`);
  const { acknowledged } = await report(service);
  const begun = performance.now();
  const wasKilled = await runVictim(options, [home, to], killAfterMs, tally, name);
  const tookMs = performance.now() - begun;
  tally.slowest.with = Math.max(tally.slowest.with, (await report(service)).max);
  tally.backups += 1;
  tally.killed += wasKilled ? 1 : 0;
  // The ledger must not grow while it is compared.
  service.child.kill('SIGSTOP');
  if (existsSync(to) && isFinishedBackup(to)) {
    tally.finished += 1;
    await checkFinished(folder, to, acknowledged, tally, name);
  } else if (wasKilled) {
    tally.unfinished += 1;
    await checkUnfinished(options, run, to, tally);
  } else tally.violations.push(`${name}: a backup that was not killed is not finished`);
  service.child.kill('SIGCONT');
  say(
    `${name}: killed after ${killAfterMs === null ? 'the end' : `${Math.round(killAfterMs)} ms`}: ${JSON.stringify(tally)}`,
  );
  rmSync(to, { recursive: true, force: true });
  return tookMs;
}

/** @returns whether it was killed before it ended */
async function runVictim(
  { victim }: BackupCampaign,
  argv: readonly string[],
  killAfterMs: number | null,
  tally: BackupTally,
  name: string,
): Promise<boolean> {
  const child = spawn(process.execPath, [victim, ...argv], { stdio: ['ignore', 'ignore', 'pipe'] });
  let stderr = '';
  child.stderr.on('data', (text) => (stderr += String(text)));
  const timer = killAfterMs === null ? null : setTimeout(() => child.kill('SIGKILL'), killAfterMs);
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  if (timer !== null) clearTimeout(timer);
  if (signal !== 'SIGKILL' && code !== 0) tally.violations.push(`${name}: exit ${code}: ${stderr.slice(0, 2_000)}`);
  return signal === 'SIGKILL';
}

async function checkFinished(
  folder: string,
  backup: string,
  acknowledged: number,
  tally: BackupTally,
  name: string,
): Promise<void> {
  const home = join(folder, `restored-${name}`);
  try {
    // The replay below finds what that of the restore would.
    const { verdict, kept } = await restore(backup, home, { replay: false });
    if (verdict.verdict !== 'verified') tally.violations.push(`${name}: ${JSON.stringify(verdict).slice(0, 2_000)}`);
    tally.entries = Math.max(tally.entries, kept.size);
    const { report, traces } = await readHome(home);
    if (!report.ok) tally.violations.push(`${name}: replay: ${report.verdict}: ${JSON.stringify(report.difference)}`);
    if (traces < acknowledged) tally.violations.push(`${name}: ${traces} of ${acknowledged} acknowledged steps`);
  } catch (error) {
    tally.violations.push(`${name}: a finished backup is not restored: ${String(error)}`);
  }
  rmSync(home, { recursive: true, force: true });
}

async function checkUnfinished(options: BackupCampaign, run: BackupRun, to: string, tally: BackupTally): Promise<void> {
  const { folder } = options;
  const { home, service, name } = run;
  const restored = join(folder, `unfinished-${name}`);
  const keys = join(home, 'keys');
  const code = await restore(to, restored, { keys: existsSync(keys) ? keys : null }).then(
    () => 'restored',
    (error: unknown) => (error as { code?: string }).code ?? String(error),
  );
  if (code !== 'LEDGER_UNAVAILABLE') tally.violations.push(`${name}: an unfinished backup: ${code}`);
  if (existsSync(restored)) tally.violations.push(`${name}: an unfinished backup has left a home`);
  // Each fifth is repeated: that takes as long as a backup.
  if (tally.unfinished % 5 !== 1) return;
  service.child.kill('SIGCONT');
  const { acknowledged } = await report(service);
  await runVictim(options, [home, to], null, tally, name);
  service.child.kill('SIGSTOP');
  tally.repeated += 1;
  if (isFinishedBackup(to)) await checkFinished(folder, to, acknowledged, tally, `${name}-again`);
  else tally.violations.push(`${name}: a repeated backup is not finished`);
}

/** Restores a backup of a home after whose backup nothing was erased. */
export const restore = (backup: string, home: string, options: Partial<RestoreOptions> = {}) =>
  restoreHome({
    backup,
    home,
    keys: null,
    erasures: 'none',
    heads: [],
    policies: policySource(shippedContract()),
    actor: 'otto operator',
    log: winstonLog('silent'),
    ...options,
  });

async function readHome(home: string) {
  const paths = homePaths(home);
  const store = openSqliteStore({
    ...sqliteFiles(paths),
    readOnly: true,
    erasureSeal: erasureSealOf(paths, { readOnly: true }),
  });
  const { externalHeadStore } = openHead(paths, { readOnly: true });
  try {
    const report = await new LedgerReader(store, externalHeadStore).replay();
    let traces = 0;
    for await (const { type } of store.log()) traces += type === 'step_trace' ? 1 : 0;
    return { report, traces };
  } finally {
    await externalHeadStore.close();
    await store.close();
  }
}

async function startService({ service: program }: BackupCampaign, home: string): Promise<Service> {
  const child = spawn(process.execPath, [program, home], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(child, 'exit').then(() => Promise.reject(new Error('the service has ended')));
  ended.catch(() => undefined);
  const service: Service = { child, lines: createInterface(child.stdout), ended };
  // Until there is something to back up.
  while ((await report(service)).acknowledged < 64);
  return service;
}

async function report({ child, lines, ended }: Service): Promise<ServiceReport> {
  const line = once(lines, 'line') as Promise<[string]>;
  child.stdin?.write('report\n');
  return JSON.parse((await Promise.race([line, ended]))[0]) as ServiceReport;
}
