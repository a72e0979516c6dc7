import { systemClock } from '../../../system/system-clock.js';
import { FORMAT_VERSION } from '../../../stores/sqlite/sqlite-schema.js';
import { sqliteFormat } from '../../../stores/sqlite/untouched-file.js';
import { valuesOf } from '../../../core/contract/policy/pins.js';
import { CodedError } from '../../../core/errors.js';
import {
  examineDisk,
  examineKeys,
  examineMachine,
  examinePermissions,
  examineLedger,
  doctorFinding,
  DOCTOR_SUBJECTS,
  type DoctorFinding,
  type DoctorLevel,
} from '../examine.js';
import { openHome, type HomePaths } from '../../../home/home.js';
import type { ProgressReporter } from '../../../engine/ports/progress.js';
import { countReads } from '../../../runtime/ledger/count-reads.js';
import { readPackageVersion } from '../../../system/package-version.js';
import {
  NO_OPERANDS,
  type CliCommand,
  type CommandArguments,
  type CommandGroup,
  type ExitCode,
} from '../../../interfaces/cli/command.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { isNotChecked } from '../../../interfaces/cli/exit-code.js';
import { progressFor } from '../../../interfaces/cli/progress-bar.js';
import {
  findContractFolder,
  homeOf,
  loadContract,
  readRegistrations,
} from '../../../interfaces/cli/options/folders.js';
import {
  findSharedHome,
  openCluster,
  openSharedReader,
  HEADS_OPTION,
  STORE_OPTION,
  type SharedHome,
} from '../../../interfaces/cli/store/shared-home.js';
import { createPainter, escapeText, jsonLine, table } from '../../../interfaces/cli/text/terminal.js';

/** `turnpike doctor`: what is wrong with an installation. */
const doctor: CliCommand = {
  name: 'doctor',
  access: 'none',
  summary: 'Examine the installation: versions, keys, permissions, disk, clock, settings, unfinished effects',
  operands: NO_OPERANDS,
  options: [STORE_OPTION, HEADS_OPTION],
  notes: [
    'Reads only, and works while a service uses the home directory. Exits 0 if nothing is wrong, 1 if there is a',
    'problem, and 4 if nothing is wrong but something could not be examined. Reads the newest 256 run trees for unknown',
    'outcomes; `turnpike ledger verify` reads everything.',
  ],
  async run(args, io) {
    progressFor(args, io).begin({ label: 'examining the installation', unit: 'entries', total: null });
    const findings = await examine(args, io);
    const sorted = DOCTOR_SUBJECTS.flatMap((subject) => findings.filter((one) => one.subject === subject));
    if (args.values.json) {
      for (const finding of sorted) await io.stdout.write(jsonLine(finding));
    } else {
      const rows = sorted.map(({ subject, level, text }) => [
        { text: subject },
        { text: level },
        { text: escapeText(text) },
      ]);
      await io.stdout.write(table(rows, createPainter(io.colours)));
    }
    return exitCodeOf(sorted.map(({ level }) => level));
  },
};

export const DOCTOR_COMMANDS: readonly CommandGroup[] = [{ title: 'backups and keys', commands: [doctor] }];

const exitCodeOf = (levels: readonly DoctorLevel[]): ExitCode =>
  levels.includes('problem') ? 1 : levels.includes('unchecked') ? 4 : 0;

async function examine(args: CommandArguments, io: Io): Promise<readonly DoctorFinding[]> {
  const paths = homeOf(args, io);
  const shared = findSharedHome(paths, args);
  return [
    ...examineMachine(readPackageVersion()),
    ...examinePermissions(paths),
    ...(await examineKeys(paths, systemClock().now())),
    ...examineDisk(paths),
    ...(await examineContract(args, io)),
    ...(await examineStore(paths, shared, progressFor(args, io))),
  ];
}

/** Formats, unsafe settings of a shared ledger, and the ledger itself. */
async function examineStore(
  paths: HomePaths,
  shared: SharedHome | null,
  progress: ProgressReporter,
): Promise<readonly DoctorFinding[]> {
  const found: DoctorFinding[] = [];
  if (shared?.stored.unsafe_shared === true) {
    const text = 'the volume may be on a network file system (unsafe_shared): outcomes can be recorded wrongly';
    found.push(doctorFinding('settings', 'problem', text));
  }
  try {
    found.push(await examineFormat(paths, shared));
    // Not like other readers: those may create a cache of replay points.
    const opened =
      shared === null ? openHome(paths, { readOnly: true }) : await openSharedReader(shared, { allHeads: true });
    const { externalHeadStore } = opened;
    const store = countReads(opened.store, progress, { label: null });
    try {
      return [...found, ...(await examineLedger({ store, externalHeadStore, clock: systemClock() }))];
    } finally {
      await externalHeadStore.close();
      await store.close();
    }
  } catch (error) {
    if (!(error instanceof CodedError)) throw error;
    // A database that cannot be reached may be well.
    const isAway = shared !== null && error.code === 'LEDGER_UNAVAILABLE';
    const level = isAway || isNotChecked(error) ? 'unchecked' : 'problem';
    const text = `${String(error.code)}: ${error.message}`;
    return [...found, doctorFinding('ledger', level, text)];
  }
}

async function examineFormat(paths: HomePaths, shared: SharedHome | null): Promise<DoctorFinding> {
  if (shared !== null) {
    const cluster = await openCluster(shared, true);
    try {
      return doctorFinding('format', 'ok', `PostgreSQL ledger of format ${(await cluster.status()).format}`);
    } finally {
      await cluster.close();
    }
  }
  const found = sqliteFormat(paths.ledger);
  if (found >= FORMAT_VERSION) return doctorFinding('format', 'ok', `SQLite ledger of format ${found}`);
  const text = `SQLite ledger of format ${found}: the next opening for writing migrates it to format ${FORMAT_VERSION}`;
  return doctorFinding('format', 'note', `${text}, so make a backup first`);
}

/** The policy for new runs. */
async function examineContract(args: CommandArguments, io: Io): Promise<readonly DoctorFinding[]> {
  try {
    const { files, check, cautions } = await loadContract(findContractFolder(args, io), io, {
      registrations: await readRegistrations(args, io),
    });
    const careless = cautions.filter(({ severity }) => severity === 'error').length;
    const pins = valuesOf(files).filter(({ pin }) => 'problem' in pin).length;
    const found = [
      check.findings.length > 0
        ? doctorFinding('settings', 'problem', 'the policy does not load: run `turnpike policy check`')
        : doctorFinding('settings', 'ok', 'the policy loads'),
    ];
    if (careless > 0)
      found.push(doctorFinding('settings', 'problem', 'the policy is careless: run `turnpike policy check`'));
    if (pins > 0)
      found.push(doctorFinding('settings', 'problem', 'policy files are not pinned, so every run is denied: pin them'));
    return found;
  } catch (error) {
    if (!(error instanceof CodedError)) throw error;
    const level = isNotChecked(error) ? 'unchecked' : 'problem';
    return [doctorFinding('settings', level, `${String(error.code)}: ${error.message}`)];
  }
}
