import { usageError } from '../../../errors.js';
import { limitHeapGrowth } from '../../../adapters/heap-growth.js';
import { NO_OPERANDS, type CliCommand, type ExitCode } from '../../command.js';
import { withHomeAccess } from '../../home-access.js';
import { homeOf } from '../../options/folders.js';
import { STORE_OPTION } from '../../store/shared-home.js';

/** `turnpike worker`: a worker of a shared ledger without an HTTP service. */
export const worker: CliCommand = {
  name: 'worker',
  section: 'worker',
  summary: 'Run a worker of a shared ledger without an HTTP service',
  operands: NO_OPERANDS,
  options: [STORE_OPTION],
  notes: [
    'The worker fires timers, settles the effects of workers that are gone, and integrates commits into the log, until',
    'it receives SIGTERM. After the loss of the database it joins again by itself. Needs a home directory of',
    '`turnpike init --store`. Other commands of this home work through it.',
  ],
  async run(args, io) {
    limitHeapGrowth();
    const stop = io.stop();
    const { home } = homeOf(args, io);
    return withHomeAccess(
      args,
      io,
      async ({ worker: own }): Promise<ExitCode> => {
        if (own === null) {
          throw usageError(`${home} does not name a database: create a home with \`turnpike init --store URL\``);
        }
        await io.stderr.writeLine(
          `this worker has joined the ledger, ${own.volume_id === null ? 'without the volume' : `with volume ${own.volume_id}`}`,
        );
        if (!stop.aborted) await new Promise((end) => stop.addEventListener('abort', end, { once: true }));
        return 0;
      },
      { localOnly: true, isService: true },
    );
  },
};
