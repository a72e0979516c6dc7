import { usageError } from '../../../../core/errors.js';
import { limitHeapGrowth } from '../../../../system/heap-growth.js';
import { defineCommand, NO_OPERANDS, type CliCommand, type CommandArguments, type ExitCode } from '../../command.js';
import { withHomeAccess } from '../../home-access.js';
import { homeOf } from '../../options/folders.js';
import {
  ADMIN_OPTION,
  LEDGER_FAILURE_OPTION,
  REPORT_OPTIONS,
  withServiceLife,
  type ServiceLife,
} from '../../options/service-options.js';
import { HEADS_OPTION, STORE_OPTION } from '../../store/shared-home.js';
import { WAIT_OPTION } from '../../store/wait-for-database.js';
import { systemClock } from '../../../../system/system-clock.js';

/** `turnpike worker`: a worker of a shared ledger without an HTTP service. */
export const worker: CliCommand = defineCommand({
  name: 'worker',
  access: 'write',
  section: 'worker',
  summary: 'Run a worker of a shared ledger without an HTTP service',
  operands: NO_OPERANDS,
  options: [STORE_OPTION, HEADS_OPTION, WAIT_OPTION, ADMIN_OPTION, LEDGER_FAILURE_OPTION, ...REPORT_OPTIONS],
  notes: [
    'The worker fires timers, settles the effects of workers that are gone, and integrates commits into the log, until',
    'it receives SIGTERM. After the loss of the database it joins again by itself. Needs a home directory of',
    '`turnpike init --store`. Other commands of this home work through it.',
  ],
  async run(args, io) {
    limitHeapGrowth();
    return withServiceLife(args, io, (life) => runWorker(args, args.values.wait, life));
  },
});

function runWorker(args: CommandArguments, waitSeconds: number, life: ServiceLife): Promise<ExitCode> {
  const { io, telemetry } = life;
  const stop = life.stop();
  const wait = { ms: waitSeconds * 1_000, clock: systemClock(), log: io.log, stop };
  const { home } = homeOf(args, io);
  return withHomeAccess(
    args,
    io,
    async ({ worker: own, localTurnpike: turnpike }): Promise<ExitCode> => {
      if (own === null || turnpike === null) {
        throw usageError(`${home} does not name a database: create a home with \`turnpike init --store URL\``);
      }
      await io.stderr.writeLine(
        `this worker has joined the ledger, ${own.volume_id === null ? 'without the volume' : `with volume ${own.volume_id}`}`,
      );
      if (life.admin !== null) {
        const { workerMetrics } = await import('../../../http/worker-metrics.js');
        life.admin.begin({ readiness: turnpike.readiness, metrics: workerMetrics(turnpike, own.cluster, telemetry) });
      }
      const unwatch = life.admin === null ? turnpike.readiness.watch() : null;
      await life.waitForEnd();
      unwatch?.();
      return 0;
    },
    { localOnly: true, reaction: life.reaction, telemetry, wait },
  );
}
