import { usageError } from '../../../core/errors.js';
import type { ClusterStatus, ClusterWorker } from '../../../engine/ports/ledger/cluster.js';
import { NO_OPERANDS, type CliCommand, type CommandGroup } from '../../../interfaces/cli/command.js';
import { homeOf } from '../../../interfaces/cli/options/folders.js';
import { findSharedHome, openCluster, STORE_OPTION } from '../../../interfaces/cli/store/shared-home.js';
import {
  countText,
  createPainter,
  escapeText,
  jsonLine,
  table,
  type Paint,
} from '../../../interfaces/cli/text/terminal.js';

/** `turnpike cluster status`: the workers of a shared ledger, and what waits. */
const clusterStatus: CliCommand = {
  name: 'cluster status',
  access: 'read',
  summary: 'List the workers of a shared ledger, their unfinished effects, and what waits',
  operands: NO_OPERANDS,
  options: [STORE_OPTION],
  notes: [
    'Reads the database only, so it works while no worker runs. A worker that is `lost` has no session with the',
    'database: the other workers declare it over within a few seconds, and settle its effects. One that is `refusing` is',
    'connected and refuses every request, with the code of the reason. One of an earlier version says how many run trees',
    'of a later version it has met: it cannot serve them, and leaves them to workers of that version. The merge delay is',
    'the age of the oldest commit that is not in the log yet. Versions differ during a rolling update.',
  ],
  async run(args, io) {
    const paths = homeOf(args, io);
    const shared = findSharedHome(paths, args);
    if (shared === null) {
      throw usageError(`${paths.home} does not name a database: create a home with \`turnpike init --store URL\``);
    }
    const cluster = await openCluster(shared, true);
    try {
      const status = await cluster.status();
      await io.stdout.write(
        args.values.json ? jsonLine(statusJson(status)) : statusText(status, createPainter(io.colours)),
      );
      return 0;
    } finally {
      await cluster.close();
    }
  },
};

export const CLUSTER_COMMANDS: readonly CommandGroup[] = [{ title: 'services', commands: [clusterStatus] }];

/** The members of `--json`: their names are older than the terms of the sources. */
export const statusJson = ({ workers, ...status }: ClusterStatus) => ({
  ...status,
  performers: workers.map(({ worker_id, ...worker }) => ({ performer: worker_id, ...worker })),
});

/** The status as text, for a terminal. */
export function statusText(status: ClusterStatus, paint: Paint): string {
  const { format, entries, workers, pending, timers, standby_lag_ms } = status;
  const countOf = (state: State): number => workers.filter((one) => stateOf(one) === state).length;
  const lines = [
    `ledger of format ${format}: ${entries} ${entries === 1 ? 'entry' : 'entries'}`,
    `commits not in the log yet: ${pending.commits}, merge delay ${pending.oldest_ms} ms`,
    `timers overdue: ${timers.due}, by up to ${timers.oldest_ms} ms`,
    ...(standby_lag_ms === null ? [] : [`slowest standby: ${standby_lag_ms} ms behind`]),
    `workers: ${countOf('working')} working${countOf('refusing') === 0 ? '' : `, ${countOf('refusing')} refusing everything`}`,
  ];
  const rows = workers.length === 0 ? '' : table(workers.map(rowOf), paint);
  return `${lines.map((line) => `${line}\n`).join('')}${rows}`;
}

type State = 'working' | 'refusing' | 'lost' | 'over';

const stateOf = ({ over_at, connected, refuses }: ClusterWorker): State => {
  if (over_at !== null) return 'over';
  if (!connected) return 'lost';
  return refuses === null ? 'working' : 'refusing';
};

const COLOURS = { working: 'green', refusing: 'red', lost: 'yellow', over: 'red' } as const;

const cannotServe = (trees: number): string => `cannot serve ${countText(trees, 'run tree')} of a later version`;

function rowOf(worker: ClusterWorker) {
  const { pid, joined_at, over_at, version, address, volume_id, effects, callers, later_trees } = worker;
  const state = stateOf(worker);
  return [
    { text: `${worker.worker_id}` },
    {
      text: state === 'refusing' ? `refusing (${escapeText(worker.refuses ?? '')})` : state,
      colour: COLOURS[state],
    },
    { text: `pid ${pid}` },
    { text: `version ${escapeText(version ?? 'unknown')}${later_trees === 0 ? '' : `, ${cannotServe(later_trees)}`}` },
    { text: `since ${joined_at}${over_at === null ? '' : `, over ${over_at}`}` },
    { text: `${countText(effects, 'effect')}, ${countText(callers, 'caller')}` },
    { text: version === null ? '-' : escapeText(volume_id ?? 'no volume') },
    { text: escapeText(address ?? '-') },
  ];
}
